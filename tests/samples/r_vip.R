# Writes r_vip.json: variable importance in projection of models by R's pls::plsr(method = "oscorespls").
# Run as: Rscript r_vip.R > r_vip.json (R >= 4, package pls), with two folders in the environment: SKLEARN_DATA, the data
# files that come with scikit-learn, and TECATOR, with tecator_x.csv (absorbances) and tecator_fat.csv, without headers.
library(pls)
numbers <- function(x) paste0("[", paste(sprintf("%.17g", x), collapse = ", "), "]")
model <- function(...) plsr(..., method = "oscorespls", tol = 1e-15, maxit = 10000)

# What the components explain of the columns of y, one row per column.
explained <- function(object) object$Yloadings^2 %*% diag(colSums(object$scores^2))

# The formula of Chong and Jun (2005), with as many components as there are in SS.
vip <- function(object, SS) {
  W <- object$loading.weights
  sqrt(nrow(W) * colSums(SS * t(W^2) / colSums(W^2)) / sum(SS))
}

# The same in another way: shares of the variance of y, as squared correlations with the scores. y is standardised.
vip_by_correlations <- function(object, y) vip(object, colSums(cor(y, object$scores)^2))

data(gasoline)
octane <- model(octane ~ NIR, ncomp = 4, data = gasoline)
octane_scaled <- model(octane ~ NIR, ncomp = 3, data = gasoline, scale = TRUE)

absorbance <- as.matrix(read.csv(file.path(Sys.getenv("TECATOR"), "tecator_x.csv"), header = FALSE))
fat <- scan(file.path(Sys.getenv("TECATOR"), "tecator_fat.csv"), quiet = TRUE)
tecator <- model(fat ~ absorbance, ncomp = 6)

folder <- Sys.getenv("SKLEARN_DATA")
patients <- as.matrix(read.table(file.path(folder, "diabetes_data_raw.csv.gz")))
progression <- scan(file.path(folder, "diabetes_target.csv.gz"), quiet = TRUE)
diabetes <- model(progression ~ patients, ncomp = 3, scale = TRUE)

exercise <- scale(as.matrix(read.csv(file.path(folder, "linnerud_exercise.csv"), sep = " ")))
physiology <- scale(as.matrix(read.csv(file.path(folder, "linnerud_physiological.csv"), sep = " ")))
linnerud <- model(physiology ~ exercise, ncomp = 2)

# Few figures: those of every so many wavelengths, and the ten largest, counted from zero.
some <- function(x, step) {
  few <- numbers(x[seq(1, length(x), step)])
  paste0('{"every": ', step, ', "vip": ', few, ', "largest": ', numbers(order(-x)[1:10] - 1), "}")
}
one <- function(object) vip(object, colSums(explained(object)))

cat("{\n")
cat('"gasoline, 4 components":', some(one(octane), 40), ",\n")
cat('"gasoline, 3 components, scaled":', some(one(octane_scaled), 40), ",\n")
cat('"tecator, 6 components":', some(one(tecator), 10), ",\n")
cat('"diabetes, 3 components, scaled":', numbers(one(diabetes)), ",\n")
cat('"linnerud, 2 components":', numbers(one(linnerud)), ",\n")
cat('"linnerud, 2 components, by correlations":', numbers(vip_by_correlations(linnerud, physiology)), ",\n")
cat('"linnerud, 2 components, each target":', numbers(apply(explained(linnerud), 1, vip, object = linnerud)), "\n")
cat("}\n")
