// The frame: keys, theme, live updates. Every page works without it.

const root = document.documentElement.dataset.root; // where the pages are mounted
const TYPING = "input, select, textarea, [contenteditable]";
const pages = new Map([...document.querySelectorAll("[data-go]")].map((a) => [a.dataset.go, a]));
let afterG = false;

// -- keys -----------------------------------------------------------------------------------------

const actions = {
  "?": () => document.getElementById("keys").showModal(),
  "/": () => document.querySelector("input[type=search]")?.focus() ?? location.assign(`${root}/beliefs#q`),
  j: () => choose(1),
  k: () => choose(-1),
  Enter: () => chosen()?.querySelector("a[href]")?.click(),
  t: nextTheme,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches(TYPING)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "Enter" && event.target.matches("a, button, summary")) return;
  if (afterG) {
    afterG = false;
    pages.get(event.key)?.click();
    return;
  }
  if (event.key === "g") {
    afterG = true;
    return;
  }
  if (press(event.key) || actions[event.key]) {
    event.preventDefault();
    if (!pressed) actions[event.key]();
  }
});

// A control with `data-key` is pressed by its key: in the chosen item first, then anywhere.
let pressed = null;
function press(key) {
  const selector = `[data-key="${CSS.escape(key)}"]`;
  const scopes = [chosen(), document].filter(Boolean);
  pressed = scopes.map((scope) => scope.querySelector(selector)).find(Boolean) ?? null;
  if (pressed) {
    if (pressed.matches("details")) toggleDetails(pressed);
    else pressed.click();
  }
  return pressed !== null;
}

function toggleDetails(details) {
  details.open = !details.open;
  if (details.open) details.querySelector("input:not([type=hidden]), textarea")?.focus();
}

// -- the chosen item of a list --------------------------------------------------------------------

const items = () => [...document.querySelectorAll("[data-item]")];
const chosen = () => document.querySelector("[data-item].is-chosen");

function choose(step) {
  const all = items();
  if (all.length === 0) return;
  const at = all.indexOf(chosen());
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  chosen()?.classList.remove("is-chosen");
  next.classList.add("is-chosen");
  next.querySelector("a[href]")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

// -- theme ----------------------------------------------------------------------------------------

const themes = document.getElementById("theme");
themes.addEventListener("change", () => themes.form.requestSubmit());

function nextTheme() {
  const isDark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  themes.value = isDark ? "light" : "dark";
  themes.form.requestSubmit();
}

// -- help -----------------------------------------------------------------------------------------

const help = document.querySelector("[data-help]");
help.hidden = false;
help.addEventListener("click", actions["?"]);

// -- copying --------------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
  button.textContent = "Copied";
});

// -- live updates ---------------------------------------------------------------------------------

const badge = document.querySelector("[data-watcher]");

async function renewBadge() {
  const answer = await fetch(`${root}/pulse.json`).catch(() => null);
  const watcher = answer?.ok ? (await answer.json()).watcher : "page stopped";
  badge.textContent = `watcher: ${watcher}`;
  badge.className = `badge badge-${watcher.replace(" ", "-")}`;
}

// Parts with `data-live` are asked for again; nothing moves while somebody types in one.
function renewParts() {
  renewBadge();
  for (const part of document.querySelectorAll("[data-live]")) {
    const isInUse = part.contains(document.activeElement) || part.querySelector(".is-chosen");
    if (!isInUse) htmx.trigger(part, "memory-changed");
  }
}

const events = new EventSource(`${root}/events`);
events.addEventListener("changed", renewParts);
events.addEventListener("error", renewBadge);
renewBadge();
