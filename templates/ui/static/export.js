// Search in the page: every word must be in a belief; `kind:fact` keeps to one kind.
const form = document.querySelector("[data-search]");
if (form) {
  const beliefs = [...document.querySelectorAll("[data-belief]")].map((article) => ({
    article,
    text: article.textContent.toLowerCase(),
    kind: article.dataset.belief,
  }));
  const count = form.querySelector("output");
  const search = (query) => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const { article, text, kind } of beliefs) {
      const fits = words.every((word) => (word.startsWith("kind:") ? `kind:${kind}` === word : text.includes(word)));
      article.hidden = !fits;
      found += fits;
    }
    count.textContent = words.length ? `${found} of ${beliefs.length}` : "";
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("input").addEventListener("input", (event) => search(event.target.value));
}
