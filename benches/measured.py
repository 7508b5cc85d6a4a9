"""What benchmarks share: running planetree, generated data, and curves of seconds as a picture."""
import json, os, subprocess


def run(*command):
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def generated(planetree, work, rows):
    """LETOR text of so many rows to train on, in the shape of MSLR."""
    text = f"{work}/text-{rows}"
    if not os.path.exists(text):
        run(planetree, "sample", "--shape", "mslr", "--rows", str(rows * 5 // 3), "--seed", "7", "--output", text)
    return text


def trained(planetree, work, data, settings, *options):
    """The figures of a training. Its model is model.parquet in the work directory."""
    stats = f"{work}/stats.json"
    pairs = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    run(planetree, "train", "--data", data, "--model", f"{work}/model.parquet", "--stats", stats, *options, *pairs)
    with open(stats) as file:
        return json.load(file)


def draw(name, series, unit):
    """Draws a picture a series, from 0, into docs/: {what varies: [(value, cost), ...]}; the unit is that of the cost."""
    width, height, edge = 250, 200, 40
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {len(series) * width} {height + 20}" font-family="sans-serif" font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>']
    for place, (what, points) in enumerate(series.items()):
        left, most_x, most_y = place * width + edge, max(x for x, _ in points), max(y for _, y in points) * 1.1
        across = lambda x: left + x / most_x * (width - edge - 20)
        up = lambda y: height - edge / 2 - y / most_y * (height - edge - 10)
        parts.append(f'<path d="M{left} {up(most_y):.0f}V{up(0):.0f}H{across(most_x):.0f}" fill="none" stroke="#888"/>')
        line = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="#1668a8" stroke-width="2"/>')
        for x, y in points:
            parts.append(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="#1668a8"><title>{what} {x:,.0f}: {shown(y)} {unit} a tree</title></circle>')
        x, y = points[-1]
        parts.append(f'<text x="{across(x):.0f}" y="{up(y) - 8:.0f}" text-anchor="end">{shown(y)} {unit}</text>')
        parts.append(f'<text x="{across(most_x):.0f}" y="{height - 4}" text-anchor="end">{most_x:,.0f}</text>')
        parts.append(f'<text x="{left + (width - edge - 20) / 2:.0f}" y="{height + 14}" text-anchor="middle" font-weight="bold">{what}</text>')
    with open(os.path.join(os.path.dirname(__file__), "../docs", name), "w") as file:
        file.write("\n".join(parts + ["</svg>", ""]))


def shown(cost):
    return f"{cost:.0f}" if cost >= 10 else f"{cost:.2f}"
