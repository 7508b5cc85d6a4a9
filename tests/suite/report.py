"""Tests reports in a browser: wide and narrow windows, light and dark mode, mouse and keyboard.

    python report.py CHROMIUM REPORT.html STYLE.css [EVIL.html]

Without playwright it fails with ModuleNotFoundError, and the test is skipped.
"""

import json
import pathlib
import re
import struct
import sys

from playwright.sync_api import sync_playwright

ARGUMENTS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
             '--disable-background-networking', '--disable-component-update', '--disable-sync']
WIDTHS = [(1280, 900), (390, 844), (360, 740)]


class Visit:
    """An open page, and all errors, dialogs and requests that occurred on it."""

    def __init__(self, browser, file, width, height, scheme):
        self.context = browser.new_context(viewport={'width': width, 'height': height}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.problems, self.address = [], pathlib.Path(file).resolve().as_uri()
        self.page.on('console', lambda message: message.type in ('error', 'warning') and self.problems.append(message.text))
        self.page.on('pageerror', lambda error: self.problems.append(str(error)))
        self.page.on('dialog', lambda dialog: (self.problems.append('dialog: ' + dialog.message), dialog.dismiss()))
        self.page.on('request', self.check_request)
        self.page.goto(self.address)
        self.page.wait_for_selector('figure .canvas svg')

    def check_request(self, request):
        if request.url.split('#')[0] != self.address and not request.url.startswith(('data:', 'blob:')):
            self.problems.append('request: ' + request.url)

    def close(self):
        self.page.wait_for_timeout(50)
        assert not self.problems, self.problems
        self.context.close()


def check_width(page, width):
    """No element is wider than the window, in any tab."""
    for tab in page.query_selector_all('[role=tab]'):
        if tab.is_visible():
            tab.click()
    wide = page.evaluate('document.documentElement.scrollWidth')
    assert wide <= width, f'{wide} is wider than the window of {width}'
    out = page.evaluate('''() => [...document.querySelectorAll('main *')].filter(e => {
        const b = e.getBoundingClientRect();
        return b.width && b.right > innerWidth + 1 && !e.closest('.scroll') && !e.closest('svg');
    }).map(e => e.outerHTML.slice(0, 120)).slice(0, 3)''')
    assert not out, out


def check_charts(page):
    """Every visible chart is drawn, without invalid numbers, and has a table."""
    empty = page.evaluate('''() => [...document.querySelectorAll('figure[data-chart]')]
        .filter(f => f.offsetParent && !f.querySelector('svg *')).length''')
    assert empty == 0, f'{empty} charts are not drawn'
    broken = page.evaluate('''() => [...document.querySelectorAll('figure svg *')]
        .filter(e => [...e.attributes].some(a => /NaN|undefined|Infinity/.test(a.value)))
        .map(e => e.outerHTML).slice(0, 3)''')
    assert not broken, broken
    without = page.evaluate('''() => [...document.querySelectorAll('figure[data-chart]')]
        .filter(f => !f.querySelector('details table td')).length''')
    assert without == 0, f'{without} charts have no table'


def check_tooltip(page):
    """Tooltips appear at the pointer and at the focus, and follow the arrow keys."""
    canvas = page.locator('#learning figure:visible .canvas').first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    tooltip = page.locator('#learning figure:visible .tooltip').first
    assert tooltip.is_hidden()
    page.mouse.move(box['x'] + box['width'] * 0.6, box['y'] + box['height'] / 2)
    tooltip.wait_for(state='visible')
    hovered = tooltip.inner_text()
    assert re.search(r'round \d+', hovered) and re.search(r'0\.\d{4}', hovered), hovered
    inside = tooltip.bounding_box()
    assert inside['x'] >= 0 and inside['x'] + inside['width'] <= page.viewport_size['width'], inside
    page.mouse.move(2, 2)
    tooltip.wait_for(state='hidden')
    canvas.focus()
    page.keyboard.press('Shift+Tab')
    page.keyboard.press('Tab')
    tooltip.wait_for(state='visible')
    assert 'round 1' in tooltip.inner_text(), tooltip.inner_text()
    page.keyboard.press('ArrowRight')
    assert 'round 2' in tooltip.inner_text(), tooltip.inner_text()
    page.keyboard.press('Escape')
    tooltip.wait_for(state='hidden')


def check_every_tooltip(page):
    """Every visible chart has tooltips at its first and last value."""
    for figure in page.locator('figure[data-chart]:visible').all():
        figure.locator('.canvas').focus()
        page.keyboard.press('End')
        page.keyboard.press('Home')
        said = figure.locator('.tooltip').inner_text()
        assert said.strip() and 'NaN' not in said and 'undefined' not in said, said


def check_logarithmic_axis(page):
    """Axes over a wide range are logarithmic; curves of few points have dots."""
    labels = page.evaluate('''() => [...document.querySelector('#strength figure svg').querySelectorAll('text.axis')]
        .filter(e => e.getAttribute('text-anchor') === 'middle').map(e => [e.textContent, Number(e.getAttribute('x'))])''')
    x = dict(labels)
    assert abs((x['10'] - x['1']) - (x['100'] - x['10'])) < 1, x
    assert page.locator('#curves figure').first.locator('circle.dot').count() >= 2


def check_tabs(page):
    """Mouse and arrow keys switch tabs, and only one panel is visible."""
    tabs = page.locator('#features [role=tablist]:visible').last.locator('[role=tab]')
    assert tabs.count() == 3
    tabs.nth(1).click()
    panel = lambda number: page.locator('#' + tabs.nth(number).get_attribute('aria-controls'))
    assert panel(1).is_visible() and panel(0).is_hidden()
    panel(1).locator('svg').wait_for(state='visible')
    page.keyboard.press('ArrowRight')
    assert tabs.nth(2).get_attribute('aria-selected') == 'true' and panel(2).is_visible() and panel(1).is_hidden()
    assert tabs.nth(2).evaluate('e => e === document.activeElement')
    page.keyboard.press('ArrowRight')
    assert panel(0).is_visible() and panel(2).is_hidden()


def check_tree(page):
    """Mouse and keyboard expand and collapse nodes; another tree can be selected."""
    tree = page.locator('#trees [role=tree]:visible')
    node = tree.locator('[role=treeitem][aria-expanded=false]').first
    node.scroll_into_view_if_needed()
    before = tree.locator('[role=treeitem]:visible').count()
    node = node.element_handle()
    node.query_selector('.row').click()
    assert node.get_attribute('aria-expanded') == 'true'
    opened = tree.locator('[role=treeitem]:visible').count()
    assert opened > before, (before, opened)
    page.keyboard.press('ArrowLeft')
    assert node.get_attribute('aria-expanded') == 'false' and tree.locator('[role=treeitem]:visible').count() == before
    page.keyboard.press('ArrowRight')
    page.keyboard.press('ArrowRight')
    assert page.evaluate('document.activeElement.getAttribute("aria-level")') != node.get_attribute('aria-level')
    text = tree.inner_text()
    page.locator('#trees button:visible', has_text='Next').click()
    assert tree.inner_text() != text
    page.locator('#trees button:visible', has_text='Expand all').click()
    assert tree.locator('[role=treeitem][aria-expanded=false]').count() == 0


def predicted(forest, values):
    """The score of a model's trees for a row of values, up to a constant: a twin of the script in the page."""
    single = lambda value: struct.unpack('f', struct.pack('f', value))[0]
    total = 0
    for tree in forest['trees']:
        node = 0
        while tree['feature'][node] >= 0:
            feature = tree['feature'][node]
            value = forest['fill'][feature] if values[feature] is None else values[feature]
            if value is None:
                below = [tree['left'], tree['right'], tree['middle']][tree['missing'][node]][node]
            else:
                below = tree['left' if single(value) <= single(tree['threshold'][node]) else 'right'][node]
            if below < 0:
                break
            node = below
        total += tree['value'][node]
    return total * forest['weight']


def check_why(page):
    """Contributions add up, two documents can be compared, and a changed value changes score and rank as the trees say."""
    data = json.loads(page.locator('#report-data').text_content())
    explained = page.locator('#queries details.query:visible:has([data-drill])')
    for tab in page.locator('#queries [role=tab]').all():
        if explained.count() == 0 and tab.is_visible():
            tab.click()
    query = explained.first
    query.locator('summary').first.click()
    why = query.locator('.why')
    drill = data['drills'][int(why.get_attribute('data-drill'))]
    system = data['explained'][drill['system']]
    rows = why.locator('.contributions .row')
    rows.first.wait_for(state='visible')
    figures = [float(row.locator('.figures').inner_text().replace('−', '-').replace('≈ ', '').replace(',', '')) for row in rows.all()]
    assert abs(sum(figures[:-1]) - figures[-1]) < 2e-3, figures
    assert abs(figures[0] - system['expected']) < 1e-3 and len(figures) <= 11, figures
    first, second = drill['documents'][0], drill['documents'][1]
    why.locator('select').nth(1).select_option('1')
    figures = [float(row.locator('.figures').inner_text().replace('−', '-').replace('≈ ', '').replace(',', '')) for row in rows.all()]
    assert abs(sum(figures[:-1]) - figures[-1]) < 2e-3 and abs(figures[0] - second['score']) < 1e-3, figures
    assert re.search(r'above|level', why.locator('p[role=status]').first.inner_text())
    query.locator('tbody tr.explained').nth(1).click()
    assert why.locator('select').first.input_value() == '1'
    # What if: the trees in the page give the differences of the real scores.
    forest = next(one for one in data['forests'] if one['model'] == system['model'])
    assert abs((predicted(forest, first['values']) - predicted(forest, second['values'])) - (first['score'] - second['score'])) < 1e-4
    why.locator('details.whatif summary').click()
    outcome = why.locator('.outcome')
    assert abs(float(outcome.get_attribute('data-score')) - second['score']) < 1e-9
    feature = int(why.locator('.whatif select').input_value())
    moved = 0
    for value in (-1000, 0.4, 1000):
        why.locator('.whatif input[type=number]').fill(str(value))
        values = list(second['values'])
        values[feature] = value
        expected = second['score'] + (predicted(forest, values) - predicted(forest, second['values']))
        assert abs(float(outcome.get_attribute('data-score')) - expected) < 1e-6, (outcome.inner_text(), expected)
        above = sum(other > expected for other in drill['scores'][2:]) + (drill['scores'][0] >= expected)
        assert int(outcome.get_attribute('data-rank')) == 1 + above
        moved += abs(expected - second['score']) > 1e-6
    assert moved, 'the most important feature changes the score'
    why.locator('.whatif button', has_text='Reset').click()
    assert abs(float(outcome.get_attribute('data-score')) - second['score']) < 1e-9
    # An unchanged document keeps its rank, also among equal scores.
    for place, document in enumerate(drill['documents']):
        why.locator('select').first.select_option(str(place))
        assert int(outcome.get_attribute('data-rank')) == document['rank'], document
    ties = {'scores': [3, 2, 2, 2, 1]}
    assert [page.evaluate('([drill, place, score]) => Why.rankOf(drill, place, score)', [ties, place, 2]) for place in range(5)] == [1, 2, 3, 4, 5]
    assert page.evaluate('([drill, place, score]) => Why.rankOf(drill, place, score)', [ties, 1, 1]) == 4
    query.locator('summary').first.click()


def check_search(page):
    """Queries are found by id, and their documents can be opened even in hidden tabs."""
    query = page.locator('#queries details.query:visible > summary .id').first.inner_text()
    box = page.locator('#search input[type=search]:visible').first
    box.fill('no such query')
    assert page.locator('#search tbody tr:visible').count() == 0
    box.fill(query[:1])
    assert page.locator('#search tbody tr:visible').count() > 1
    box.fill(query)
    row = page.locator('#search tbody tr:visible').filter(has=page.get_by_text(query, exact=True)).first
    row.locator('button').click()
    opened = page.locator(f'details.query[data-query="{query}"][open]')
    assert opened.count() == 1 and opened.is_visible(), query
    opened.locator('summary').first.click()


def check_download(page):
    """Disputed labels can be saved as a file, without a request."""
    with page.expect_download() as download:
        page.locator('#disputed button.download:visible').first.click()
    text = pathlib.Path(download.value.path()).read_text()
    assert download.value.suggested_filename == 'disputed-labels.csv' and text.startswith('ranking,query_id,doc_id,label'), text[:80]


def check_cues(page, width):
    """A table that is wider than its box has a cue, others have none."""
    page.evaluate('document.querySelectorAll("figure > details").forEach(e => { e.open = true; })')
    # The second frame comes after the observers of sizes of the first one.
    page.evaluate('() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')
    wrong = page.evaluate('''() => [...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility())
        .filter(e => (e.scrollWidth - e.clientWidth > 2) !== e.classList.contains('more-right'))
        .map(e => e.outerHTML.slice(0, 200)).slice(0, 3)''')
    assert not wrong, wrong
    assert width > 600 or page.locator('.scroll.more-right:visible').count() > 0
    wrong = page.evaluate('''() => [...document.querySelectorAll('.scroll.tall')].filter(e => e.checkVisibility())
        .filter(e => (e.scrollHeight - e.clientHeight > 3) === e.nextElementSibling.hidden)
        .map(e => e.outerHTML.slice(0, 200)).slice(0, 3)''')
    assert not wrong, wrong
    tall = page.locator('.scroll.tall:visible').first
    assert tall.locator('+ .more-below').is_visible()
    tall.evaluate('e => { e.scrollTop = e.scrollHeight; }')
    tall.locator('+ .more-below').wait_for(state='hidden')


def check_rows(page):
    """Texts in columns that are out of sight do not make rows tall, and a query can be opened without scrolling sideways."""
    tall = page.evaluate('''() => [...document.querySelectorAll('.scroll.more-right tbody tr')].filter(e => e.checkVisibility()).filter(row => {
        const box = row.closest('.scroll').getBoundingClientRect(), height = row.getBoundingClientRect().height;
        const seen = [...row.cells].filter(cell => cell.getBoundingClientRect().left < box.right);
        const needed = cell => { const range = document.createRange(); range.selectNodeContents(cell); return range.getBoundingClientRect().height; };
        return height > 40 + Math.max(...seen.map(needed));
    }).map(e => e.outerHTML.slice(0, 200)).slice(0, 3)''')
    assert not tall, tall
    button = page.locator('#search tbody tr:visible button').first
    assert button.count() == 0 or button.evaluate('e => e.getBoundingClientRect().right <= e.closest(".scroll").getBoundingClientRect().right')


def check_texts(page):
    """Labels of an axis do not overlap, and there is no negative zero."""
    overlapping = page.evaluate('''() => [...document.querySelectorAll('figure svg')].filter(e => e.getBoundingClientRect().width).flatMap(svg => {
        const boxes = [...svg.querySelectorAll('.axis[text-anchor=middle]')].map(e => e.getBoundingClientRect());
        return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom));
    }).length''')
    assert overlapping == 0, f'{overlapping} labels of axes overlap'
    assert not re.search(r'[-−]0(?![.\d])', page.locator('.tree:visible').first.inner_text())


def check_marks(page):
    """Labels of best rounds do not overlap."""
    overlapping = page.evaluate('''() => [...document.querySelectorAll('figure svg')].filter(e => e.getBoundingClientRect().width).flatMap(svg => {
        const boxes = [...svg.querySelectorAll('.mark-text')].map(e => e.getBoundingClientRect());
        return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom));
    }).length''')
    assert overlapping == 0, f'{overlapping} labels overlap'


def check_theme(page, scheme):
    """The theme is that of the system until the reader selects another."""
    background = lambda: page.evaluate('getComputedStyle(document.body).backgroundColor')
    brightness = lambda: sum(int(part) for part in re.findall(r'\d+', background())[:3])
    assert (brightness() < 300) == (scheme == 'dark'), background()
    button = page.locator('#theme')
    seen = []
    for _ in range(3):
        button.click()
        seen.append((button.inner_text().strip().lower(), brightness() < 300))
    assert dict(seen) == {'light': False, 'dark': True, 'system': scheme == 'dark'}, seen


def check_names(page):
    """All controls have accessible names, ids are unique, and links have targets."""
    nameless = page.evaluate('''() => [...document.querySelectorAll('button, select, [role=application], [role=tree], [role=region]')]
        .filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label')))
        .map(e => e.outerHTML.slice(0, 100))''')
    assert not nameless, nameless
    ids = page.evaluate('[...document.querySelectorAll("[id]")].map(e => e.id)')
    assert len(ids) == len(set(ids))
    for link in page.locator('.contents a').all():
        assert page.locator(link.get_attribute('href')).count() == 1


def check_print(page):
    """All tabs and charts are printed."""
    page.emulate_media(media='print')
    page.evaluate('window.dispatchEvent(new Event("beforeprint"))')
    hidden = page.evaluate('[...document.querySelectorAll("[role=tabpanel]")].filter(e => !e.offsetHeight).length')
    undrawn = page.evaluate('[...document.querySelectorAll("figure[data-chart]")].filter(f => !f.querySelector("svg *")).length')
    assert (hidden, undrawn) == (0, 0), (hidden, undrawn)
    assert not page.locator('.contents').is_visible()
    page.emulate_media(media='screen')


def linear(colour):
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def times(matrix, colour):
    return [min(1, max(0, sum(factor * part for factor, part in zip(row, colour)))) for row in matrix]


# Simulation of colour vision deficiencies: Machado, Oliveira and Fernandes 2009, severity 1.
VISION = {
    'all cones': [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    'no red': [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    'no green': [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    'no blue': [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour):
    x, y, z = times([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], colour)
    f = lambda part: part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
    x, y, z = f(x / 0.9505), f(y), f(z / 1.089)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def check_colours(style):
    """Series differ from each other with any colour vision, and from the background, in light and dark mode."""
    pairs = dict(re.findall(r'--([\w-]+): light-dark\((#\w{6}), #\w{6}\)', style))
    darks = dict(re.findall(r'--([\w-]+): light-dark\(#\w{6}, (#\w{6})\)', style))
    worst = {}
    for theme, colours in (('light', pairs), ('dark', darks)):
        series = [colours[f's{number}'] for number in range(1, 9)]
        for vision, matrix in VISION.items():
            colours_seen = [lab(times(matrix, linear(colour))) for colour in series]
            # Most reports use the first four. All eight also differ in line style and label.
            for count, least in ((4, 18), (8, 10)):
                distance = min((sum((p - q) ** 2 for p, q in zip(colours_seen[a], colours_seen[b])) ** 0.5, a + 1, b + 1)
                            for a in range(count) for b in range(a))
                worst[theme, vision, count] = round(distance[0])
                assert distance[0] >= least, (theme, vision, count, distance)
        luminance = lambda colour: sum(f * p for f, p in zip((0.2126, 0.7152, 0.0722), linear(colour))) + 0.05
        for name, least in [(f's{number}', 3) for number in range(1, 9)] + [('text', 7), ('soft', 4.5), ('accent-text', 4.5), ('good', 4.5), ('bad', 4.5)]:
            ratio = luminance(colours[name]) / luminance(colours['card'])
            assert max(ratio, 1 / ratio) >= least, (theme, name, round(max(ratio, 1 / ratio), 2))
    return worst


def main(chromium, report, style, *evil):
    print('colour distances:', check_colours(pathlib.Path(style).read_text()))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for width, height in WIDTHS:
            for scheme in ('light', 'dark'):
                visit = Visit(browser, report, width, height, scheme)
                page = visit.page
                check_tooltip(page)
                check_logarithmic_axis(page)
                check_tabs(page)
                check_tree(page)
                check_search(page)
                check_why(page)
                check_download(page)
                check_marks(page)
                check_theme(page, scheme)
                check_every_tooltip(page)
                check_width(page, width)
                check_rows(page)
                check_texts(page)
                check_cues(page, width)
                check_charts(page)
                check_names(page)
                check_print(page)
                visit.close()
                print(f'{width} x {height}, {scheme}: {page_summary(report)}')
        for file in evil:
            visit = Visit(browser, file, 1280, 900, 'light')
            check_every_tooltip(visit.page)
            assert visit.page.evaluate('window.evil === undefined')
            shown = visit.page.content()
            assert 'window.evil' in visit.page.locator('main').inner_text() or 'window.evil' in shown
            visit.close()
            print(f'{file}: markup in names is escaped')
        browser.close()


def page_summary(report):
    return f'{pathlib.Path(report).stat().st_size} bytes'


if __name__ == '__main__':
    main(*sys.argv[1:])
