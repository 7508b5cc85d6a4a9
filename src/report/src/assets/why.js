// Why a document is where it is: contributions of the features to its score, the difference to another document, and
// what its score and rank would be with other values. Also the files that can be saved.
const Why = (() => {
  const { add } = Figures;
  const { number } = Charts;
  const SHOWN = 8;

  const signed = (value) => `${value < 0 ? '−' : '+'}${number(Math.abs(value))}`;

  // The score of a model's trees for a row of values, up to a constant.
  function score(forest, values) {
    let sum = 0;
    for (const tree of forest.trees) {
      let node = 0;
      while (tree.feature[node] >= 0) {
        const feature = tree.feature[node];
        const value = values[feature] === null ? forest.fill[feature] : values[feature];
        let next;
        if (value === null) next = [tree.left, tree.right, tree.middle][tree.missing[node]][node];
        else next = Math.fround(value) <= Math.fround(tree.threshold[node]) ? tree.left[node] : tree.right[node];
        if (next < 0) break; // no training row took this branch, so the node itself has the value
        node = next;
      }
      sum += tree.value[node];
    }
    return sum * forest.weight;
  }

  // The rank of a document with another score. The scores are in the order of the ranking, so a document with the same
  // score stays above if it is above now.
  function rankOf(drill, place, value) {
    const isAbove = (score, other) => other !== place && (score > value || (score === value && other < place));
    return 1 + drill.scores.filter(isAbove).length;
  }

  function setUp(place, data) {
    const drill = data.drills[place.dataset.drill], system = data.explained[drill.system];
    const forest = data.forests.find((one) => one.model === system.model && one.weight !== null);
    const name = (document) => `${document.rank}. ${document.name || 'document'}`;
    const shown = (feature, value) => (value === null ? 'missing' : (system.words[feature] || [])[value] || (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)))));

    add(place, 'h4', {}, 'Why is it here?');
    const bar = add(place, 'div', { class: 'choose' });
    const choice = (text, first) => {
      const select = add(add(bar, 'label', {}, `${text} `), 'select');
      if (first) add(select, 'option', { value: -1 }, first);
      drill.documents.forEach((document, at) => add(select, 'option', { value: at }, name(document)));
      return select;
    };
    const [one, other] = [choice('Document'), choice('against', 'the expected score')];
    const bars = add(place, 'div', { class: 'contributions' });
    const said = add(place, 'p', { class: 'note', role: 'status' });

    function row(label, detail, value, most, total) {
      const line = add(bars, 'div', { class: `row${total ? ' total' : ''}` });
      add(line, 'span', { class: 'feature' }, label);
      add(line, 'span', { class: 'soft' }, detail);
      const track = add(line, 'span', { class: 'track', 'aria-hidden': 'true' });
      if (most) add(track, 'i', { class: value < 0 ? 'down' : 'up', style: `width:${(50 * Math.min(1, Math.abs(value) / most)).toFixed(2)}%` });
      add(line, 'span', { class: 'figures' }, total ? number(value) : signed(value));
    }

    function explain() {
      const first = drill.documents[one.value], second = drill.documents[other.value];
      const parts = first.contributions.map((value, feature) => ({ feature, value: value - (second ? second.contributions[feature] : 0) }))
        .filter((part) => part.value !== 0).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
      const top = parts.slice(0, SHOWN), rest = parts.slice(SHOWN);
      const sum = rest.reduce((all, part) => all + part.value, 0);
      const most = Math.max(...top.map((part) => Math.abs(part.value)), Math.abs(sum));
      bars.replaceChildren();
      row(second ? `score of ${name(second)}` : 'expected score', '', second ? second.score : system.expected, 0, true);
      for (const { feature, value } of top) {
        const values = second ? `${shown(feature, first.values[feature])}, not ${shown(feature, second.values[feature])}` : shown(feature, first.values[feature]);
        row(system.features[feature], values, value, most);
      }
      if (rest.length) row(rest.length === 1 ? '1 other feature' : `${rest.length} other features`, '', sum, most);
      row(`score of ${name(first)}`, '', first.score, 0, true);
      const lead = top.slice(0, 3).filter((part) => Math.abs(part.value) > 0).map((part) => `${system.features[part.feature]} (${signed(part.value)})`).join(', ');
      if (!second) said.textContent = lead ? `Largest contributions: ${lead}.` : 'No feature contributes.';
      else if (first === second) said.textContent = 'Choose two different documents.';
      else said.textContent = `${name(first)} is ${first.score > second.score ? 'above' : first.score < second.score ? 'below' : 'level with'} ${name(second)} by ${number(Math.abs(first.score - second.score))}: ${lead || 'no feature differs'}.`;
    }

    const details = add(place, 'details', { class: 'whatif' });
    add(details, 'summary', {}, 'What if a feature had another value?');
    const inside = add(details, 'div');
    function simulate() {
      inside.replaceChildren();
      if (!forest) {
        const some = data.forests.find((one) => one.model === system.model);
        const few = some && some.trees.length < some.all
          ? `only ${some.trees.length} of ${some.all} trees are in this file (all models share 24,000 nodes)`
          : 'the model is not a single sum or mean of trees';
        const why = some && some.normalised ? 'features are normalised over the documents of the query' : few;
        add(inside, 'p', { class: 'note' }, `Not available: ${why}.`);
        return;
      }
      const document = drill.documents[one.value], changed = document.values.slice(), before = score(forest, changed);
      const order = document.contributions.map((value, feature) => [Math.abs(value), feature]).sort((a, b) => b[0] - a[0]).map(([, feature]) => feature);
      const bar = add(inside, 'div', { class: 'choose' });
      const select = add(add(bar, 'label', {}, 'Feature '), 'select');
      for (const feature of order) add(select, 'option', { value: feature }, system.features[feature]);
      const input = add(add(bar, 'label', {}, 'value '), 'input', { type: 'number', step: 'any' });
      const reset = add(bar, 'button', { type: 'button' }, 'Reset');
      const slider = add(inside, 'input', { type: 'range', 'aria-label': 'Value of the feature' });
      const result = add(inside, 'p', { class: 'outcome', role: 'status' });
      const cuts = (feature) => forest.trees.flatMap((tree) => tree.threshold.filter((_, node) => tree.feature[node] === feature));
      const tell = () => {
        const value = document.score + (score(forest, changed) - before), rank = rankOf(drill, Number(one.value), value);
        const beyond = rank > drill.documents.length && rank === drill.scores.length && drill.scores.length >= 20 ? ' or below' : '';
        const list = changed.flatMap((now, feature) => (now === document.values[feature] ? [] : [`${system.features[feature]} ${shown(feature, document.values[feature])} → ${shown(feature, now)}`]));
        result.textContent = `Score ${number(document.score)} → ${number(value)}, rank ${document.rank} → ${rank}${beyond}${list.length ? ` with ${list.join(', ')}` : ''}.`;
        result.dataset.score = value;
        result.dataset.rank = rank;
      };
      const show = () => {
        const feature = Number(select.value), all = cuts(feature), value = changed[feature];
        const known = drill.documents.map((one) => one.values[feature]).filter((one) => one !== null).concat(all);
        const [low, high] = [Math.min(...known), Math.max(...known)], more = (high - low || 1) * 0.05;
        slider.min = low - more; slider.max = high + more; slider.step = (high - low || 1) / 200;
        input.value = value === null ? '' : Number(value.toPrecision(7));
        input.placeholder = 'missing';
        slider.value = value === null ? low : value;
        tell();
      };
      const change = (text) => {
        const value = text === '' ? null : Number(text);
        if (value !== null && !Number.isFinite(value)) return;
        changed[Number(select.value)] = value;
        tell();
      };
      select.addEventListener('change', show);
      input.addEventListener('input', () => { change(input.value); if (input.value !== '') slider.value = input.value; });
      slider.addEventListener('input', () => { input.value = Number(Number(slider.value).toPrecision(6)); change(input.value); });
      reset.addEventListener('click', () => { document.values.forEach((value, feature) => { changed[feature] = value; }); show(); });
      show();
    }
    const all = () => { explain(); if (details.open) simulate(); };
    details.addEventListener('toggle', () => { if (details.open) simulate(); });
    for (const select of [one, other]) select.addEventListener('change', all);
    // A click on a document of the list explains it.
    const table = place.parentElement.querySelector('table');
    for (const [at, line] of table ? [...table.querySelectorAll('tbody tr')].entries() : []) {
      if (at >= drill.documents.length) break;
      line.classList.add('explained');
      line.addEventListener('click', () => { one.value = at; all(); });
    }
    explain();
  }

  function start(data) {
    for (const place of document.querySelectorAll('[data-drill]')) {
      const query = place.closest('details.query');
      const fill = () => { if (query.open && !place.firstChild) setUp(place, data); };
      query.addEventListener('toggle', fill);
      fill();
    }
    for (const button of document.querySelectorAll('[data-download]')) {
      button.addEventListener('click', () => {
        const file = data.downloads[button.dataset.download];
        const link = add(document.body, 'a', { href: URL.createObjectURL(new Blob([file.text], { type: 'text/csv' })), download: file.name, hidden: '' });
        link.click();
        link.remove();
      });
    }
  }

  return { start, rankOf };
})();
