// The page: tabs, the theme switch, and the current section.
(() => {
  const root = document.documentElement;

  // Tabs as in the ARIA practices: arrow keys select, the panel follows.
  for (const list of document.querySelectorAll('[role="tablist"]')) {
    const tabs = [...list.querySelectorAll('[role="tab"]')];
    const select = (wanted, move) => {
      for (const tab of tabs) {
        const chosen = tab === wanted;
        tab.setAttribute('aria-selected', chosen);
        tab.tabIndex = chosen ? 0 : -1;
        document.getElementById(tab.getAttribute('aria-controls')).hidden = !chosen;
      }
      if (move) wanted.focus();
    };
    tabs.forEach((tab, place) => {
      tab.addEventListener('click', () => select(tab, false));
      tab.addEventListener('keydown', (event) => {
        const count = tabs.length;
        const to = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place + count - 1, ArrowUp: place + count - 1, Home: 0, End: count - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        select(tabs[to % count], true);
      });
    });
    select(tabs[0], false);
  }

  // The theme: the system's setting or the reader's choice, stored if the browser allows it for files.
  const button = document.getElementById('theme');
  const themes = ['system', 'light', 'dark'];
  const kept = { get: () => { try { return localStorage.getItem('planetree-theme'); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem('planetree-theme', theme); } catch { /* a private window */ } } };
  const choose = (theme) => {
    if (theme === 'system') delete root.dataset.theme; else root.dataset.theme = theme;
    button.querySelector('span').textContent = theme[0].toUpperCase() + theme.slice(1);
    button.setAttribute('aria-label', `Theme: ${theme}. Press to change.`);
    button.dataset.choice = theme;
  };
  choose(themes.includes(kept.get()) ? kept.get() : 'system');
  button.hidden = false;
  button.addEventListener('click', () => {
    const next = themes[(themes.indexOf(button.dataset.choice) + 1) % themes.length];
    choose(next);
    kept.set(next);
  });

  const data = JSON.parse(document.getElementById('report-data').textContent);
  Figures.start(data.charts);
  Trees.start(data.forests);
  Why.start(data);
  Search.start(data.searches);

  // A table that is wider or taller than its box says so, because scroll bars are invisible on phones.
  const boxes = [...document.querySelectorAll('.scroll')];
  const cue = (box) => {
    const more = box.scrollWidth - box.clientWidth;
    box.classList.toggle('more-right', more > 2 && box.scrollLeft < more - 2);
    box.classList.toggle('more-left', more > 2 && box.scrollLeft > 2);
    if (!box.classList.contains('tall')) return;
    if (!box.below) {
      box.below = Figures.add(document.createElement('div'), 'p', { class: 'more-below' }, 'scroll for more rows ↓');
      box.after(box.below);
    }
    box.below.hidden = box.scrollHeight - box.clientHeight - box.scrollTop < 3;
  };
  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => cue(entry.target)));
  for (const box of boxes) {
    sizes.observe(box);
    box.addEventListener('scroll', () => cue(box), { passive: true });
  }

  // The current section: the last one whose top has scrolled past.
  const links = [...document.querySelectorAll('.contents a')];
  const sections = links.map((link) => document.getElementById(link.hash.slice(1)));
  const bar = document.querySelector('.contents');
  let marked = null;
  const mark = () => {
    const passed = sections.filter((section) => section.getBoundingClientRect().top < 160);
    const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 4;
    const place = atEnd ? sections.length - 1 : Math.max(0, passed.length - 1);
    const link = links[place];
    if (!link || link === marked) return;
    if (marked) marked.removeAttribute('aria-current');
    link.setAttribute('aria-current', 'true');
    marked = link;
    if (bar.scrollWidth > bar.clientWidth) bar.scrollTo({ left: link.offsetLeft - 60 });
  };
  window.addEventListener('scroll', mark, { passive: true });
  mark();
})();
