// Search of queries by id and text. A query whose documents are in the page can be opened.
const Search = (() => {
  const { add } = Figures;
  const [FIRST, MOST] = [5, 20];

  // Opens a query: its tabs, then its details.
  function open(details) {
    for (let at = details.parentElement; at; at = at.parentElement) {
      if (at.getAttribute('role') === 'tabpanel' && at.hidden) document.getElementById(at.getAttribute('aria-labelledby')).click();
    }
    for (let at = details; at; at = at.parentElement) if (at.localName === 'details') at.open = true;
    details.querySelector('summary').focus();
    details.scrollIntoView({ block: 'start' });
  }

  function setUp(place, search) {
    const known = new Map();
    for (const details of document.querySelectorAll('details.query')) if (!known.has(details.dataset.query)) known.set(details.dataset.query, details);
    const box = add(add(place, 'label', {}, 'Query id or text '), 'input', { type: 'search', spellcheck: 'false', autocomplete: 'off' });
    const said = add(place, 'p', { class: 'note', role: 'status' });
    const scroll = add(place, 'div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table' });
    const find = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = search.queries.filter(([id, text]) => words.every((word) => `${id} ${text || ''}`.toLowerCase().includes(word)));
      const most = words.length ? MOST : FIRST;
      said.textContent = `${found.length} of ${search.queries.length} queries${found.length > most ? `, the first ${most} are shown` : ''}.`;
      const table = document.createElement('table'), head = add(add(table, 'thead'), 'tr');
      for (const [at, title] of ['query', '', ...search.systems].entries()) add(head, 'th', { scope: 'col', class: at > 1 ? 'number' : 'text' }, at > 1 ? `${search.metric}, ${title}` : title);
      const body = add(table, 'tbody');
      for (const [id, text, values] of found.slice(0, most)) {
        const line = add(body, 'tr'), cell = add(line, 'td', { class: 'text' });
        if (text) add(cell, 'span', { class: 'title' }, text);
        add(cell, 'span', { class: 'id' }, id);
        const opener = add(line, 'td', { class: 'text' });
        if (known.has(id)) add(opener, 'button', { type: 'button' }, 'Documents').addEventListener('click', () => open(known.get(id)));
        for (const value of values) add(line, 'td', { class: 'number' }, value === null ? '–' : value.toFixed(4));
      }
      scroll.replaceChildren(table);
      scroll.hidden = found.length === 0;
      scroll.dispatchEvent(new Event('scroll')); // the cue for more columns
    };
    box.addEventListener('input', find);
    find();
  }

  function start(searches) {
    for (const place of document.querySelectorAll('[data-search]')) setUp(place, searches[place.dataset.search]);
  }

  return { start };
})();
