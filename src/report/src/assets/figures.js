// Figures: charts drawn at the available width, with a legend and a tooltip that follows the pointer, or the
// arrow keys while the chart has the focus.
const Figures = (() => {
  function add(parent, name, attributes, text) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function setUp(figure, spec) {
    const plot = figure.querySelector('.plot');
    const legend = add(plot, 'ul', { class: 'legend', 'aria-hidden': 'true' });
    const canvas = add(plot, 'div', { class: 'canvas', tabindex: 0, role: 'application', 'aria-roledescription': 'chart', 'aria-label': `${spec.label}. Use the arrow keys to move between values; the table below lists all of them.` });
    const tooltip = add(plot, 'div', { class: 'tooltip', role: 'status', hidden: '' });
    let chart, over, current = -1, drawn = 0;

    function draw(width) {
      if (width < 40 || width === drawn) return;
      drawn = width;
      chart = Charts.draw(spec, width);
      over = Charts.shape('g', { 'pointer-events': 'none' });
      chart.picture.append(over);
      canvas.replaceChildren(chart.picture);
      legend.replaceChildren();
      const entries = chart.legend && chart.legend.length > 1 ? chart.legend : [];
      for (const entry of entries) {
        const item = add(legend, 'li', { class: `s${entry.slot}` });
        add(item, 'i', { class: `${chart.boxes ? 'box' : ''}${entry.dashed ? 'dashed' : ''}` });
        add(item, 'span', {}, entry.name);
      }
      legend.hidden = entries.length === 0;
      hide();
    }

    function hide() {
      current = -1;
      tooltip.hidden = true;
      over.replaceChildren();
    }

    function show(place) {
      if (place === current) return;
      current = place;
      const stop = chart.stops[place];
      over.replaceChildren();
      stop.hold(over);
      tooltip.replaceChildren();
      add(tooltip, 'b', {}, stop.title);
      for (const row of stop.rows) {
        const line = add(tooltip, 'div', row.slot ? { class: `s${row.slot}` } : {});
        if (row.slot) add(line, 'i', { 'aria-hidden': 'true' });
        add(line, 'span', {}, row.name);
        add(line, 'span', {}, row.text);
      }
      tooltip.hidden = false;
      const [room, top] = [plot.clientWidth, canvas.offsetTop + stop.y];
      const beside = stop.x + 14 + tooltip.offsetWidth <= room ? stop.x + 14 : stop.x - 14 - tooltip.offsetWidth;
      tooltip.style.left = `${Math.max(0, Math.min(beside, room - tooltip.offsetWidth))}px`;
      tooltip.style.top = `${Math.max(0, top - tooltip.offsetHeight - 10 < -8 ? top + 26 : top - tooltip.offsetHeight - 10)}px`;
    }

    // The stop nearest to a position.
    function nearest(x, y) {
      const [dx, dy] = { x: [1, 0], y: [0, 1], xy: [1, 1] }[chart.near];
      const rise = chart.near === 'x' ? 0 : 13; // a row's stop is at its upper edge
      let best = 0, least = Infinity;
      chart.stops.forEach((stop, place) => {
        const apart = dx * (stop.x - x) ** 2 + dy * (stop.y + (chart.columns || chart.near === 'y' ? rise : 0) - y) ** 2;
        if (apart < least) [best, least] = [place, apart];
      });
      return best;
    }

    function point(event) {
      if (!chart || !chart.stops.length) return;
      const box = chart.picture.getBoundingClientRect();
      show(nearest(event.clientX - box.left, event.clientY - box.top));
    }

    canvas.addEventListener('pointermove', point);
    canvas.addEventListener('pointerdown', point);
    canvas.addEventListener('pointerleave', () => { if (document.activeElement !== canvas) hide(); });
    canvas.addEventListener('focus', () => { if (canvas.matches(':focus-visible') && chart && chart.stops.length) show(Math.max(0, current)); });
    canvas.addEventListener('blur', hide);
    canvas.addEventListener('keydown', (event) => {
      if (!chart || !chart.stops.length) return;
      if (event.key === 'Escape') { hide(); return; }
      const [last, line] = [chart.stops.length - 1, chart.columns || 1];
      const to = { ArrowRight: current + 1, ArrowLeft: current - 1, ArrowDown: current + line, ArrowUp: current - line, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(Math.max(0, Math.min(last, to)));
    });
    new ResizeObserver((entries) => draw(Math.floor(entries[0].contentRect.width))).observe(canvas);
    return draw;
  }

  function start(specs) {
    const drawers = [...document.querySelectorAll('figure[data-chart]')].map((figure) => [figure, setUp(figure, specs[figure.dataset.chart])]);
    // Printing uses another width and shows hidden panels.
    window.addEventListener('beforeprint', () => drawers.forEach(([figure, draw]) => draw(Math.min(640, figure.clientWidth || 640))));
    window.addEventListener('afterprint', () => drawers.forEach(([figure, draw]) => draw(figure.querySelector('.canvas').clientWidth)));
  }

  return { start, add };
})();
