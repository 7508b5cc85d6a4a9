// Draws charts from data as SVG: one function per kind, which returns the picture and its stops, the
// points with a tooltip. Pointer and arrow keys move from stop to stop.
const Charts = (() => {
  const SVG = 'http://www.w3.org/2000/svg';
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
  const wide = (text) => pen.measureText(text).width;

  function shape(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // Text shortened to the available width.
  function fitted(text, room) {
    if (wide(text) <= room) return text;
    let length = text.length;
    while (length > 1 && wide(text.slice(0, length) + '…') > room) length -= 1;
    return text.slice(0, length) + '…';
  }

  const scale = ([low, high], [from, to]) => (value) =>
    high === low ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from);

  const logScale = ([low, high], range) => {
    const linear = scale([Math.log10(low), Math.log10(high)], range);
    return (value) => linear(Math.log10(value));
  };

  // Numbers that begin with 1, 2 or 5; only with 1 if those are too many.
  function logTicks(low, high, count) {
    const powers = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) powers.push(power);
    const among = (digits) => powers.flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`)))
      .filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    const found = [[1, 2, 5], [1]].map(among).find((some) => some.length <= count * 1.5) || among([1]);
    return found.length > 1 ? found : [low, high];
  }

  // Round numbers from low to high, about as many as requested. One or two would not tell the scale, so that there are at
  // least three unless they must be whole.
  function ticks(low, high, count, whole) {
    if (!(high > low)) return [low];
    const rough = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(rough));
    const multiples = (step) => {
      const found = [];
      for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(at * step);
      return found;
    };
    const steps = [0.5, 1, 2, 5, 10].map((factor) => factor * power);
    const place = steps.findIndex((candidate) => candidate >= rough * 0.999);
    if (whole) return multiples(Math.max(1, Math.round(steps[place])));
    const found = multiples(steps[place]);
    return found.length < 3 ? multiples(steps[place - 1]) : found;
  }

  function padded(values, zero) {
    let low = Math.min(...values), high = Math.max(...values);
    if (zero) { low = Math.min(0, low); high = Math.max(0, high); }
    const more = (high - low || Math.abs(high) || 1) * 0.06;
    return [zero && low === 0 ? 0 : low - more, zero && high === 0 ? 0 : high + more];
  }

  function number(value) {
    if (value === null || Number.isNaN(value)) return '–';
    const size = Math.abs(value), sign = value < 0 ? '−' : '';
    if (Number.isInteger(size) && size < 1e15) return sign + size.toLocaleString('en-US');
    if (size >= 1000) return sign + size.toLocaleString('en-US', { maximumFractionDigits: 1 });
    if (size >= 0.001) return sign + size.toFixed(size >= 100 ? 2 : 4);
    if (size < 1e-9) return '≈ 0';
    return sign + size.toExponential(2);
  }
  // An axis label, with no more digits than the step of the axis needs.
  const tickText = (value) => Number(value.toPrecision(6)).toLocaleString('en-US', { maximumSignificantDigits: 6 }).replace('-', '−');

  // A picture with a vertical axis of values and a horizontal axis below.
  function plane(width, height, spec, [xs, ys], whole) {
    const picture = shape('svg', { viewBox: `0 0 ${width} ${height}`, height, 'aria-hidden': 'true' });
    const yTicks = ticks(ys[0], ys[1], height / 55, spec.y.whole);
    const left = Math.ceil(Math.max(...yTicks.map((tick) => wide(tickText(tick))))) + 10;
    const area = { left, right: width - 14, top: 22, bottom: height - 42 };
    const x = (spec.x.log ? logScale : scale)(xs, [area.left, area.right]), y = scale(ys, [area.bottom, area.top]);
    picture.append(shape('text', { x: 0, y: 11, class: 'axis' }, spec.y.label));
    for (const tick of yTicks) {
      picture.append(shape('line', { x1: area.left, x2: area.right, y1: y(tick), y2: y(tick), class: 'grid-line' }));
      picture.append(shape('text', { x: area.left - 7, y: y(tick) + 4, 'text-anchor': 'end', class: 'axis' }, tickText(tick)));
    }
    horizontal(picture, area, x, xs, spec.x.label, whole, spec.x.log, spec.x.names);
    return { picture, area, x, y };
  }

  function horizontal(picture, area, x, xs, label, whole, log, names) {
    picture.append(shape('line', { x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom, class: 'axis-line' }));
    const count = (area.right - area.left) / 75;
    for (const tick of log ? logTicks(xs[0], xs[1], count) : ticks(xs[0], xs[1], count, whole)) {
      picture.append(shape('line', { x1: x(tick), x2: x(tick), y1: area.bottom, y2: area.bottom + 4, class: 'axis-line' }));
      const text = names ? fitted(names[tick - 1] || '', 80) : tickText(tick);
      const half = names ? wide(text) / 2 : 0;
      picture.append(shape('text', { x: names ? Math.min(Math.max(x(tick), half), area.right + 14 - half) : x(tick), y: area.bottom + 17, 'text-anchor': 'middle', class: 'axis' }, text));
    }
    picture.append(shape('text', { x: area.right, y: area.bottom + 35, 'text-anchor': 'end', class: 'axis' }, label));
  }

  const proportion = (width) => Math.round(Math.min(330, Math.max(225, width * 0.5)));

  function lines(spec, width) {
    const points = spec.series.flatMap((series) => series.points);
    const xs = [Math.min(...points.map((point) => point[0])), Math.max(...points.map((point) => point[0]))];
    const ys = spec.y.domain || padded(points.map((point) => point[1]));
    const { picture, area, x, y } = plane(width, proportion(width), spec, [xs, ys], spec.x.whole);
    const at = new Map();
    for (const series of spec.series) {
      const path = series.points.map(([px, py], place) => `${place ? 'L' : 'M'}${x(px).toFixed(1)} ${y(py).toFixed(1)}`);
      picture.append(shape('path', { d: path.join(''), class: `line s${series.slot}${series.dashed ? ' dashed' : ''}` }));
      // Draw dots only if there are few points.
      if (series.points.length <= 10) {
        for (const [px, py] of series.points) picture.append(shape('circle', { cx: x(px), cy: y(py), r: 4, class: `dot s${series.slot}` }));
      }
      for (const [px, py] of series.points) {
        if (!at.has(px)) at.set(px, []);
        at.get(px).push({ series, value: py });
      }
    }
    // Labels of marks move up or down until they overlap no other.
    const taken = [];
    // Many would hide the lines of a small chart; the table has them all.
    const crowded = width < 480 && spec.series.filter((series) => series.mark).length > 4;
    const free = (box) => taken.every((other) => box.right < other.left || box.left > other.right || box.bottom < other.top || box.top > other.bottom);
    for (const { mark, slot } of spec.series) {
      if (!mark) continue;
      const [mx, my] = [x(mark.x), y(mark.y)];
      picture.append(shape('line', { x1: mx, x2: mx, y1: my, y2: area.bottom, class: `mark s${slot}` }));
      picture.append(shape('circle', { cx: mx, cy: my, r: 5, class: `dot s${slot}` }));
      const half = wide(mark.text) / 2 + 3;
      const tx = Math.min(Math.max(mx, area.left + half), area.right - half);
      const boxAt = (ty) => ({ left: tx - half, right: tx + half, top: ty - 12, bottom: ty + 4 });
      const wanted = my - 10 < area.top ? my + 20 : my - 10;
      const places = [0, 16, -16, 30, -30, 44, -44, 58, 72, 86].map((shift) => wanted + shift).filter((ty) => ty > 10 && ty < area.bottom - 4);
      const ty = crowded ? undefined : places.find((one) => free(boxAt(one)));
      if (ty === undefined) continue;
      taken.push(boxAt(ty));
      picture.append(shape('text', { x: tx, y: ty, 'text-anchor': 'middle', class: `mark-text s${slot}` }, mark.text));
    }
    const stops = [...at.keys()].sort((one, other) => one - other).map((px) => ({
      x: x(px), y: Math.min(...at.get(px).map(({ value }) => y(value))),
      title: spec.x.names ? spec.x.names[px - 1] : `${spec.x.name || spec.x.label} ${number(px)}`,
      rows: at.get(px).map(({ series, value }) => ({ name: series.name, text: number(value), slot: series.slot })),
      hold: (over) => {
        over.append(shape('line', { x1: x(px), x2: x(px), y1: area.top, y2: area.bottom, class: 'cursor' }));
        for (const { series, value } of at.get(px)) over.append(shape('circle', { cx: x(px), cy: y(value), r: 4.5, class: `dot s${series.slot}` }));
      },
    }));
    return { picture, stops, near: 'x', legend: spec.series };
  }

  function histogram(spec, width) {
    const { edges, series, sides } = spec;
    // Below, around and above the reference.
    const side = (bin) => (edges[bin + 1] <= spec.reference ? 0 : edges[bin] >= spec.reference ? 2 : 1);
    const highest = Math.max(1, ...series.flatMap((one) => one.counts));
    const { picture, area, x, y } = plane(width, proportion(width), spec, [[edges[0], edges[edges.length - 1]], [0, highest * 1.05]]);
    const stops = [];
    for (let bin = 0; bin + 1 < edges.length; bin += 1) {
      const from = x(edges[bin]) + 1, room = (x(edges[bin + 1]) - x(edges[bin]) - 2) / series.length;
      series.forEach((one, place) => {
        const top = y(one.counts[bin]);
        if (one.counts[bin]) picture.append(shape('rect', { x: from + place * room, y: top, width: Math.max(1, room), height: area.bottom - top, rx: Math.min(2, room / 3), class: `fill s${sides ? sides[side(bin)] : one.slot}` }));
      });
      stops.push({
        x: (x(edges[bin]) + x(edges[bin + 1])) / 2, y: y(Math.max(...series.map((one) => one.counts[bin]))),
        title: `${number(edges[bin])} to ${number(edges[bin + 1])}`,
        rows: series.map((one) => ({ name: one.name, text: `${number(one.counts[bin])} ${spec.y.label}`, slot: sides ? sides[side(bin)] : one.slot })),
        hold: (over) => over.append(shape('rect', { x: x(edges[bin]), y: area.top, width: x(edges[bin + 1]) - x(edges[bin]), height: area.bottom - area.top, class: 'hold', rx: 2 })),
      });
    }
    if (spec.reference !== null) picture.append(shape('line', { x1: x(spec.reference), x2: x(spec.reference), y1: area.top, y2: area.bottom, class: 'reference' }));
    return { picture, stops, near: 'x', legend: series, boxes: true };
  }

  // Named rows: the name is beside the row if it fits, otherwise above it.
  function rows(spec, width, tall, below) {
    const longest = Math.max(...spec.rows.map((row) => wide(row.name)));
    const above = longest > width * 0.36 && width < 640;
    const left = above ? 4 : Math.ceil(Math.min(longest, width * 0.36)) + 12;
    const step = tall + (above ? 20 : 8);
    const height = spec.rows.length * step + below + 4;
    const picture = shape('svg', { viewBox: `0 0 ${width} ${height}`, height, 'aria-hidden': 'true' });
    const place = (row) => row * step + (above ? 20 : 4);
    spec.rows.forEach((row, number) => {
      const at = above ? { x: 0, y: place(number) - 5 } : { x: left - 10, y: place(number) + tall / 2 + 4, 'text-anchor': 'end' };
      picture.append(shape('text', { ...at, class: 'name' }, fitted(row.name, above ? width : left - 10)));
    });
    return { picture, left, height, place, tall };
  }

  const held = (left, top, wideness, tall) => (over) =>
    over.append(shape('rect', { x: left, y: top, width: Math.max(wideness, 2), height: tall, rx: 4, class: 'hold' }));

  function bars(spec, width) {
    const { picture, left, place, tall } = rows(spec, width, 18, 0);
    const room = Math.max(...spec.rows.map((row) => wide(row.text))) + 10;
    const x = scale([0, Math.max(...spec.rows.map((row) => row.value), 1e-300)], [0, width - left - room]);
    const stops = spec.rows.map((row, number) => {
      const long = Math.max(1.5, x(Math.max(0, row.value)));
      picture.append(shape('rect', { x: left, y: place(number), width: long, height: tall, rx: 3, class: `fill s${row.slot || 1}` }));
      picture.append(shape('text', { x: left + long + 7, y: place(number) + tall / 2 + 4, class: 'value' }, row.text));
      return { x: left + long, y: place(number), title: row.name, rows: [{ name: spec.measure, text: row.text, slot: row.slot || 1 }].concat(row.more || []), hold: held(left, place(number), long, tall) };
    });
    return { picture, stops, near: 'y' };
  }

  function stack(spec, width) {
    const { picture, left, place, tall } = rows(spec, width, 22, 0);
    const stops = [];
    spec.rows.forEach((row, number) => {
      const all = row.counts.reduce((sum, count) => sum + count, 0) || 1;
      let from = left;
      row.counts.forEach((count, part) => {
        const long = (count / all) * (width - left - 4);
        if (!count) return;
        picture.append(shape('rect', { x: from + 1, y: place(number), width: Math.max(1, long - 2), height: tall, rx: 3, class: `fill s${spec.parts[part].slot}` }));
        const [begin, name] = [from, spec.parts[part].name];
        stops.push({ x: from + long / 2, y: place(number), title: row.name, rows: [{ name, text: `${Charts.number(count)} (${(100 * count / all).toFixed(1)} %)`, slot: spec.parts[part].slot }], hold: held(begin, place(number), long, tall) });
        from += long;
      });
    });
    return { picture, stops, near: 'xy', legend: spec.parts, boxes: true };
  }

  // Shared by intervals and boxes: rows over a horizontal axis.
  function strips(spec, width, tall, values) {
    const layout = rows(spec, width, tall, 44);
    const area = { left: layout.left, right: width - 12, bottom: layout.height - 44 };
    const xs = padded(spec.reference === null ? values : values.concat(spec.reference));
    const x = scale(xs, [area.left, area.right]);
    for (const tick of ticks(xs[0], xs[1], (area.right - area.left) / 75)) {
      layout.picture.append(shape('line', { x1: x(tick), x2: x(tick), y1: 0, y2: area.bottom, class: 'grid-line' }));
    }
    horizontal(layout.picture, area, x, xs, spec.x.label);
    if (spec.reference !== null) layout.picture.append(shape('line', { x1: x(spec.reference), x2: x(spec.reference), y1: 0, y2: area.bottom, class: 'reference' }));
    return { ...layout, x, area };
  }

  function intervals(spec, width) {
    const values = spec.rows.flatMap((row) => [row.low, row.middle, row.high].concat(row.dots || []));
    const { picture, place, tall, x, area } = strips(spec, width, 22, values);
    const stops = spec.rows.map((row, number) => {
      const [middle, slot] = [place(number) + tall / 2, row.slot || 1];
      picture.append(shape('line', { x1: x(row.low), x2: x(row.high), y1: middle, y2: middle, class: `stem s${slot}` }));
      for (const end of [row.low, row.high]) picture.append(shape('line', { x1: x(end), x2: x(end), y1: middle - 5, y2: middle + 5, class: `stem s${slot}` }));
      for (const dot of row.dots || []) picture.append(shape('circle', { cx: x(dot), cy: middle, r: 4, class: `point s${slot}` }));
      picture.append(shape('circle', { cx: x(row.middle), cy: middle, r: 6, class: `dot s${slot}` }));
      return { x: x(row.middle), y: place(number), title: row.name, rows: row.tells.map(([name, text]) => ({ name, text })), hold: held(area.left, place(number) - 1, area.right - area.left, tall + 2) };
    });
    return { picture, stops, near: 'y' };
  }

  function boxes(spec, width) {
    const { picture, place, tall, x, area } = strips(spec, width, 24, spec.rows.flatMap((row) => [...row.quantiles, row.mean]));
    const stops = spec.rows.map((row, number) => {
      const [p5, p25, p50, p75, p95] = row.quantiles;
      const [top, middle] = [place(number), place(number) + tall / 2];
      picture.append(shape('line', { x1: x(p5), x2: x(p95), y1: middle, y2: middle, class: 'stem s1' }));
      picture.append(shape('rect', { x: x(p25), y: top, width: Math.max(1, x(p75) - x(p25)), height: tall, rx: 3, class: 'cell-back' }));
      picture.append(shape('rect', { x: x(p25), y: top, width: Math.max(1, x(p75) - x(p25)), height: tall, rx: 3, class: 'faint s1' }));
      picture.append(shape('line', { x1: x(p50), x2: x(p50), y1: top, y2: top + tall, class: 'thick s1' }));
      picture.append(shape('circle', { cx: x(row.mean), cy: middle, r: 5, class: 'dot s2' }));
      const tells = [['mean', row.mean], ['5 %', p5], ['25 %', p25], ['median', p50], ['75 %', p75], ['95 %', p95], ['documents', row.count]];
      return { x: x(p50), y: top, title: row.name, rows: tells.map(([name, value]) => ({ name, text: Charts.number(value) })), hold: held(area.left, top - 1, area.right - area.left, tall + 2) };
    });
    return { picture, stops, near: 'y', legend: spec.parts, boxes: true };
  }

  function heat(spec, width) {
    const left = Math.ceil(Math.max(...spec.rows.map((row) => wide(row)))) + 10;
    const column = (width - left - 2) / spec.columns.length, tall = Math.min(38, Math.max(26, column * 0.8));
    const height = 20 + spec.rows.length * tall + 38;
    const picture = shape('svg', { viewBox: `0 0 ${width} ${height}`, height, 'aria-hidden': 'true' });
    picture.append(shape('text', { x: 0, y: 11, class: 'axis' }, spec.y.label));
    const stops = [];
    spec.rows.forEach((name, row) => {
      const top = 20 + row * tall;
      picture.append(shape('text', { x: left - 8, y: top + tall / 2 + 4, 'text-anchor': 'end', class: 'name' }, name));
      spec.columns.forEach((heading, place) => {
        const [share, from] = [spec.shares[row][place], left + place * column];
        const box = { x: from, y: top, width: column, height: tall, rx: 4 };
        picture.append(shape('rect', { ...box, class: 'cell-back' }));
        picture.append(shape('rect', { ...box, class: 'cell', 'fill-opacity': share.toFixed(3) }));
        if (column >= 25) picture.append(shape('text', { x: from + column / 2, y: top + tall / 2 + 4, class: `cell-text${share > 0.5 ? ' dark' : ''}` }, `${Math.round(share * 100)}`));
        stops.push({ x: from + column / 2, y: top, title: `${spec.x.name} ${heading}, ${spec.y.name} ${name}`, rows: [{ name: 'share', text: `${(share * 100).toFixed(1)} %` }, { name: 'documents', text: Charts.number(spec.counts[row][place]) }], hold: held(from, top, column, tall) });
      });
    });
    let end = -Infinity; // of the text before
    spec.columns.forEach((heading, place) => {
      const text = column < 44 && heading.length > 3 ? heading.replace(/–.*/, '+') : heading;
      const middle = left + (place + 0.5) * column, half = wide(text) / 2;
      if (middle - half < end + 4) return;
      end = middle + half;
      picture.append(shape('text', { x: middle, y: height - 24, 'text-anchor': 'middle', class: 'axis' }, text));
    });
    picture.append(shape('text', { x: width - 2, y: height - 6, 'text-anchor': 'end', class: 'axis' }, spec.x.label));
    return { picture, stops, near: 'xy', columns: spec.columns.length };
  }

  // Points of a row are stacked where they are dense.
  function swarm(spec, width) {
    const { picture, place, tall, x, area } = strips(spec, width, 26, spec.rows.flatMap((row) => row.points.map(([at]) => at)));
    const colour = (share) => (share === null ? 'var(--s8)' : `color-mix(in oklab, var(--s2) ${Math.round(share * 100)}%, var(--s1))`);
    const stops = spec.rows.map((row, number) => {
      const middle = place(number) + tall / 2, columns = new Map();
      for (const [at, share] of row.points) {
        const column = Math.round(x(at) / 4), before = columns.get(column) || 0;
        columns.set(column, before + 1);
        const up = Math.min(tall / 2, Math.ceil(before / 2) * 2.2) * (before % 2 ? -1 : 1);
        picture.append(shape('circle', { cx: x(at).toFixed(1), cy: (middle + up).toFixed(1), r: 2.4, style: `fill:${colour(share)}`, class: 'bee' }));
      }
      const far = row.points.reduce((most, [at]) => (Math.abs(at) > Math.abs(most) ? at : most), 0);
      return { x: x(far), y: place(number), title: row.name, rows: row.tells.map(([name, text]) => ({ name, text })), hold: held(area.left, place(number) - 1, area.right - area.left, tall + 2) };
    });
    return { picture, stops, near: 'y' };
  }

  function scatter(spec, width) {
    const both = padded(spec.points.flatMap(([px, py]) => [px, py]));
    const size = Math.min(width, 420);
    const { picture, area, x, y } = plane(width, Math.round(size * 0.85), spec, [both, both]);
    picture.append(shape('line', { x1: x(both[0]), y1: y(both[0]), x2: x(both[1]), y2: y(both[1]), class: 'reference' }));
    const stops = spec.points.map(([px, py, name]) => {
      picture.append(shape('circle', { cx: x(px), cy: y(py), r: 3.6, class: `point s${py === px ? 8 : py > px === spec.higher ? 1 : 2}` }));
      return { x: x(px), y: y(py), title: name, rows: [{ name: spec.x.label, text: number(px) }, { name: spec.y.label, text: number(py) }], hold: (over) => over.append(shape('circle', { cx: x(px), cy: y(py), r: 6, class: 'hold' })) };
    });
    return { picture, stops, near: 'xy', legend: spec.parts, boxes: true };
  }

  const KINDS = { lines, histogram, bars, stack, intervals, boxes, heat, swarm, scatter };
  return { draw: (spec, width) => KINDS[spec.kind](spec, width), shape, number };
})();
