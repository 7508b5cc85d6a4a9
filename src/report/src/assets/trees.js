// Tree browser: one tree at a time; nodes expand and collapse with the pointer or the keyboard.
const Trees = (() => {
  const { add } = Figures;
  const { number } = Charts;

  // The condition of a split.
  function question(forest, tree, node) {
    const untaken = tree.missing[node] === 2 && tree.middle[node] < 0;
    const missing = tree.missing[node] === 0 ? ' or missing' : untaken ? ' (missing: value of this node)' : '';
    return `${forest.features[tree.feature[node]]} ≤ ${Number(tree.threshold[node].toPrecision(6))}${missing}`;
  }

  function children(tree, node) {
    if (tree.feature[node] < 0) return [];
    const found = [['yes', tree.left[node]], ['no', tree.right[node]]];
    if (tree.middle[node] >= 0) found.push(['missing', tree.middle[node]]);
    return found;
  }

  function item(forest, tree, node, answer, level) {
    const below = children(tree, node);
    const made = document.createElement('li');
    made.setAttribute('role', 'treeitem');
    made.setAttribute('aria-level', level);
    made.tabIndex = -1;
    const row = add(made, 'div', { class: 'row' });
    add(row, 'span', { class: 'turn', 'aria-hidden': 'true' }, below.length ? '▸' : '');
    if (answer) add(row, 'span', { class: 'answer' }, answer);
    if (below.length) add(row, 'span', { class: 'question' }, question(forest, tree, node));
    else add(row, 'span', { class: `leaf ${tree.value[node] < 0 ? 'bad' : 'good'}` }, `${tree.value[node] < 0 ? '−' : '+'}${number(Math.abs(tree.value[node]))}`);
    const figures = add(row, 'span', { class: 'figures' });
    if (below.length) add(figures, 'span', {}, `gain ${number(tree.gain[node])}`);
    if (below.length) add(figures, 'span', {}, `value ${number(tree.value[node])}`);
    const cover = add(figures, 'span', { class: 'cover' }, `cover ${number(tree.cover[node])}`);
    add(add(cover, 'span', { class: 'gauge', 'aria-hidden': 'true' }), 'i', { style: `width:${(100 * tree.cover[node] / (tree.cover[0] || 1)).toFixed(1)}%` });
    if (below.length) made.setAttribute('aria-expanded', 'false');
    made.addEventListener('toggle-node', () => open(made, made.getAttribute('aria-expanded') !== 'true'));
    made.fill = () => {
      if (made.querySelector(':scope > ul')) return;
      const group = add(made, 'ul', { role: 'group' });
      for (const [text, child] of below) group.append(item(forest, tree, child, text, level + 1));
    };
    row.addEventListener('click', () => { made.dispatchEvent(new Event('toggle-node')); focus(made); });
    return made;
  }

  function open(node, wanted) {
    if (!node.hasAttribute('aria-expanded')) return;
    node.setAttribute('aria-expanded', wanted);
    if (wanted) node.fill();
    const group = node.querySelector(':scope > ul');
    if (group) group.hidden = !wanted;
  }

  function openAll(node, wanted, levels) {
    if (levels === 0) return;
    open(node, wanted);
    for (const child of node.querySelectorAll(':scope > ul > li')) openAll(child, wanted, levels - 1);
  }

  function focus(node) {
    const tree = node.closest('[role="tree"]');
    for (const other of tree.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    node.tabIndex = 0;
    node.focus({ preventScroll: false });
  }

  function key(event) {
    const node = event.target.closest('[role="treeitem"]');
    if (!node) return;
    const seen = [...event.currentTarget.querySelectorAll('[role="treeitem"]')].filter((other) => !other.parentElement.closest('[hidden]'));
    const at = seen.indexOf(node), opened = node.getAttribute('aria-expanded') === 'true';
    const above = node.parentElement.closest('[role="treeitem"]');
    const steps = {
      ArrowDown: () => seen[at + 1], ArrowUp: () => seen[at - 1], Home: () => seen[0], End: () => seen[seen.length - 1],
      ArrowRight: () => { if (opened) return node.querySelector(':scope > ul > li'); open(node, true); return node; },
      ArrowLeft: () => { if (opened) { open(node, false); return node; } return above; },
      Enter: () => { open(node, !opened); return node; },
    };
    steps[' '] = steps.Enter;
    if (!steps[event.key]) return;
    event.preventDefault();
    const to = steps[event.key]();
    if (to) focus(to);
  }

  function setUp(place, forest) {
    const bar = add(place, 'div', { class: 'choose' });
    const label = add(bar, 'label', {}, 'Tree ');
    const select = add(label, 'select');
    forest.trees.forEach((tree, number) => add(select, 'option', { value: number }, `${tree.number + 1} of ${forest.all}`));
    const buttons = ['Previous', 'Next', 'Expand all', 'Collapse all'].map((text) => add(bar, 'button', { type: 'button' }, text));
    const root = add(place, 'ul', { class: 'tree', role: 'tree', 'aria-label': `Tree of ${forest.name}` });
    root.addEventListener('keydown', key);
    function show(to) {
      const wanted = Math.max(0, Math.min(forest.trees.length - 1, to));
      select.value = wanted;
      const top = item(forest, forest.trees[wanted], 0, '', 1);
      top.tabIndex = 0;
      root.replaceChildren(top);
      openAll(top, true, 2);
    }
    select.addEventListener('change', () => show(Number(select.value)));
    const actions = [() => show(Number(select.value) - 1), () => show(Number(select.value) + 1), () => openAll(root.firstChild, true, Infinity), () => openAll(root.firstChild, false, Infinity)];
    buttons.forEach((button, number) => button.addEventListener('click', actions[number]));
    show(0);
  }

  function start(forests) {
    for (const place of document.querySelectorAll('[data-forest]')) setUp(place, forests[place.dataset.forest]);
  }

  return { start };
})();
