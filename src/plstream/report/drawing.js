// Draws the figures of a page with Plotly, in the colours that the page has: light or dark, and light when printed.
"use strict";
(() => {
  const root = document.documentElement;
  const touch = matchMedia("(pointer: coarse)").matches;
  const config = {
    responsive: true, displaylogo: false, displayModeBar: touch ? false : "hover", doubleClick: "reset",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };
  const figures = [...document.querySelectorAll(".drawing")].map(place => ({
    place, shown: 0, views: JSON.parse(document.getElementById(place.dataset.views).textContent),
  }));

  // Colours are names of the style sheet's variables, such as --ink.
  const colour = name => getComputedStyle(root).getPropertyValue(name).trim();
  const coloured = (value, key = "") => {
    if (typeof value === "string") return /color(scale)?$/.test(key) && value.startsWith("--") ? colour(value) : value;
    if (Array.isArray(value)) {
      return key === "colorscale" || typeof value[0] === "object" ? value.map(part => coloured(part, key)) : value;
    }
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, coloured(part, name)]));
  };

  const axis = given => ({
    gridcolor: "--grid", zerolinecolor: "--grid", linecolor: "--faint", automargin: true, exponentformat: "power", ...given,
    title: {text: given?.title ?? "", standoff: 8},
  });
  const layout = (given, width) => coloured({
    margin: {l: 8, r: 8, t: 8, b: touch ? 8 : 26}, hovermode: "closest", dragmode: touch ? false : "zoom",
    paper_bgcolor: "--paper", plot_bgcolor: "--paper",
    font: {family: "system-ui, sans-serif", size: 13, color: "--ink"},
    hoverlabel: {bgcolor: "--shade", bordercolor: "--faint", font: {color: "--ink"}, align: "left", namelength: -1},
    modebar: {bgcolor: "--paper", color: "--faint", activecolor: "--ink"},
    legend: {orientation: "h", x: 0, y: 1.02, yanchor: "bottom", itemsizing: "constant", maxheight: 0.25},
    ...given, xaxis: axis(given.xaxis), yaxis: axis(given.yaxis), ...(width ? {width} : {autosize: true}),
  });
  const draw = ({place, shown, views}, width) => {
    const view = views[shown];
    return Plotly.react(place, coloured(view.data), layout(view.layout, width), config);
  };
  const drawAll = width => Promise.all(figures.map(figure => draw(figure, width)));

  for (const figure of figures) {
    const choice = document.querySelector(`select[data-of="${figure.place.id}"]`);
    choice?.addEventListener("change", () => { figure.shown = choice.selectedIndex; draw(figure); });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
  addEventListener("beforeprint", () => { root.classList.add("printed"); drawAll(640); });
  addEventListener("afterprint", () => { root.classList.remove("printed"); drawAll(); });
  drawAll().then(() => root.classList.add("drawn"));
})();
