// The drawing of the graph. Positions come from the server; the list in the page has the same links.

const MANY = 1500; // edges that are not drawn while the map moves
const LABEL = 28; // characters beside a node; the inspector has the whole title
const box = document.querySelector("[data-graph]");
const canvas = box.querySelector(".canvas");
const inspector = box.querySelector(".inspector");
const root = box.dataset.root;
const top = document.documentElement.dataset.root; // where the pages are mounted
const style = getComputedStyle(document.documentElement);
const probe = box.appendChild(document.createElement("span")); // a variable may name a colour per theme
const colour = (name) => {
  probe.style.color = `var(${name}, var(--muted))`;
  return getComputedStyle(probe).color;
};

const address = new URL(location.href);
address.pathname += ".json";
const { map, moments } = await (await fetch(address)).json();

const scale = Math.min(1, Math.sqrt(300 / map.nodes.length)); // many nodes are drawn smaller
const graph = new graphology.MultiDirectedGraph();
const byId = new Map(map.nodes.map((node) => [node.id, node]));
for (const node of map.nodes) {
  node.title = node.title.replaceAll("`", ""); // nothing here shows code as code
  graph.addNode(node.id, {
    label: node.title.length > LABEL ? `${node.title.slice(0, LABEL - 1).trimEnd()}…` : node.title,
    x: node.x,
    y: -node.y,
    size: node.id === root ? 11 : Math.min(4 + Math.sqrt(node.degree), 10) * scale,
    color: colour(`--kind-${node.kind}`),
  });
}
for (const edge of map.edges) {
  graph.addDirectedEdge(edge.source, edge.target, { size: 1, color: colour("--edge"), relation: edge.relation });
}

let chosen = null;
const isNear = (id) => id === chosen || graph.areNeighbors(id, chosen);
const isMany = map.edges.length > MANY;

const drawing = new Sigma(graph, canvas, {
  hideEdgesOnMove: isMany,
  hideLabelsOnMove: isMany,
  labelColor: { color: colour("--text") },
  labelFont: style.fontFamily,
  labelSize: 12,
  labelDensity: 0.7,
  labelGridCellSize: 140,
  labelRenderedSizeThreshold: scale < 1 ? 7 * scale : 3,
  zIndex: true,
  defaultDrawNodeHover: drawHover,
  nodeReducer: (id, data) => (chosen === null || isNear(id) ? data : { ...data, color: colour("--line"), label: "" }),
  edgeReducer: (id, data) =>
    chosen !== null && graph.hasExtremity(id, chosen) ? { ...data, color: colour("--accent"), zIndex: 1 } : data,
});

// sigma asks the graphics card which node is under the pointer, and waits for the answer at every
// move of it: a fifth of a second where the card is emulated.
drawing.getNodeAtPosition = (pointer) => {
  if (drawing.getMouseCaptor().isMoving) return null;
  const { x, y } = drawing.viewportToFramedGraph(pointer);
  const far = (node) => (node.x - x) ** 2 + (node.y - y) ** 2;
  let found = null;
  let least = Infinity;
  for (const id of byId.keys()) {
    const distance = far(drawing.getNodeDisplayData(id));
    if (distance < least) [found, least] = [id, distance];
  }
  if (found === null) return null;
  const node = drawing.getNodeDisplayData(found);
  const centre = drawing.framedGraphToViewport(node);
  const reach = drawing.scaleSize(node.size) + 2; // pixels
  return Math.hypot(centre.x - pointer.x, centre.y - pointer.y) <= reach ? found : null;
};

function drawHover(context, data, settings) {
  context.font = `600 ${settings.labelSize}px ${settings.labelFont}`;
  const width = context.measureText(data.label ?? "").width;
  context.fillStyle = colour("--surface");
  context.strokeStyle = colour("--line-strong");
  context.beginPath();
  context.roundRect(data.x - data.size - 3, data.y - 11, width + data.size * 2 + 16, 22, 6);
  context.fill();
  context.stroke();
  context.fillStyle = data.color;
  context.beginPath();
  context.arc(data.x, data.y, data.size, 0, Math.PI * 2);
  context.fill();
  context.fillStyle = colour("--text");
  context.fillText(data.label ?? "", data.x + data.size + 5, data.y + 4);
}

if (root) {
  const reach = Math.max(0.1, ...map.nodes.map((node) => Math.hypot(node.x, node.y))) * 1.15;
  drawing.setCustomBBox({ x: [-reach, reach], y: [-reach, reach] }); // the root stands in the middle
}
drawing.on("clickNode", ({ node }) => inspect(node));
drawing.on("clickStage", () => inspect(null));
if (root) inspect(root);

// -- the inspector --------------------------------------------------------------------------------

function inspect(id) {
  chosen = id;
  drawing.refresh({ skipIndexation: true });
  if (id === null) return;
  const node = byId.get(id);
  const links = [...new Set(graph.edges(id))].slice(0, 60).map((edge) => linkItem(id, edge));
  inspector.replaceChildren(
    element("p", { className: "muted small" }, node.status && node.status !== "active" ? `${node.kind}, ${node.status}` : node.kind),
    element("h2", {}, node.title),
    element("p", { className: "row small" }, ...doors(node)),
    element("ul", { className: "points small" }, ...links),
  );
}

function doors(node) {
  const found = [];
  if (node.id !== root) found.push(anchor(`${top}/graph?around=${encodeURIComponent(node.id)}`, "neighbourhood"));
  if (node.kind === "file") found.push(anchor(`${top}/files/${node.id.slice(5).split("/").map(encodeURIComponent).join("/")}`, "file"));
  else if (node.kind !== "topic" && node.kind !== "missing") found.push(anchor(`${top}/beliefs/${encodeURIComponent(node.id)}`, "open"));
  return found;
}

function linkItem(id, edge) {
  const [source, target] = graph.extremities(edge);
  const other = source === id ? target : source;
  const button = element("button", { type: "button", className: "quiet" }, byId.get(other).title);
  button.addEventListener("click", () => inspect(other));
  const words = graph.getEdgeAttribute(edge, "relation").replaceAll("_", " ");
  return element("li", {}, `${words} ${source === id ? "→" : "←"} `, button);
}

function anchor(href, text) {
  return element("a", { href }, text);
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// -- the slider over commits ----------------------------------------------------------------------

const slider = document.querySelector("[data-moments] input");
if (slider) {
  const words = document.querySelector("[data-moments] output");
  slider.hidden = false;
  slider.addEventListener("input", () => {
    const moment = moments[slider.valueAsNumber];
    words.textContent = moment ? `${moment.at.slice(0, 10)} ${moment.subject.slice(0, 100)}` : "as it is now";
  });
  slider.addEventListener("change", () => {
    const target = new URL(location.href);
    const moment = moments[slider.valueAsNumber];
    if (moment) target.searchParams.set("at", moment.commit);
    else target.searchParams.delete("at");
    location.assign(target);
  });
}

window.lokiGraph = drawing; // for tests that pan and zoom
