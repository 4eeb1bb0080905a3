# Writes r_pls.json: coefficients by R's pls::plsr(method = "kernelpls"), an oracle that shares no code with ours.
# Run as: Rscript r_pls.R > r_pls.json (R >= 4, package pls; Linnerud's data are those of scikit-learn, as CSV files).
library(pls)
numbers <- function(x) paste0("[", paste(sprintf("%.17g", x), collapse = ", "), "]")

data(gasoline)
octane <- plsr(octane ~ NIR, ncomp = 6, data = gasoline, method = "kernelpls", scale = FALSE)
scaled <- plsr(octane ~ NIR, ncomp = 3, data = gasoline, method = "kernelpls", scale = TRUE)

folder <- Sys.getenv("LINNERUD")
exercise <- scale(as.matrix(read.csv(file.path(folder, "linnerud_exercise.csv"), sep = " ")))
physiology <- scale(as.matrix(read.csv(file.path(folder, "linnerud_physiological.csv"), sep = " ")))
linnerud <- plsr(physiology ~ exercise, ncomp = 2, method = "kernelpls")

cat("{\n")
cat('"gasoline, 2 components":', numbers(coef(octane, ncomp = 2)), ",\n")
cat('"gasoline, 6 components":', numbers(coef(octane, ncomp = 6)), ",\n")
cat('"gasoline, 3 components, scaled":', numbers(coef(scaled, ncomp = 3)), ",\n")
cat('"linnerud, 2 components":', numbers(coef(linnerud, ncomp = 2)), "\n")
cat("}\n")
