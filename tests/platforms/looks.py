"""Checks for any page. They return faults, and none for a good page."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from tests.platforms.browser import Browser

# Texts are measured besides elements: a long word may stand out of a box that fits.
_STANDS_OUT = """
const found = [], page = document.documentElement, edge = window.innerWidth + 0.5;
if (page.scrollWidth > window.innerWidth) found.push(`the page is ${page.scrollWidth} wide`);
const told = (node, box) => `${(node.parentElement ?? node).closest('[id]')?.id ?? 'body'}: `
    + `${node.nodeName} to ${Math.round(box.right)}: ${node.textContent.trim().slice(0, 40)}`;
const holder = (element, ways) => {
    while (element && !ways.includes(getComputedStyle(element).overflowX)) element = element.parentElement;
    return element;
};
for (const element of document.body.querySelectorAll('*')) {
    const box = element.getBoundingClientRect();
    if (!element.checkVisibility() || element.ownerSVGElement || box.width === 0) continue;
    if ((box.right > edge || box.left < -0.5) && !holder(element.parentElement, ['auto', 'scroll']))
        found.push(told(element, box));
}
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
while (texts.nextNode()) {
    const text = texts.currentNode, parent = text.parentElement;
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect();
    if (!parent.checkVisibility() || parent.ownerSVGElement || box.width === 0) continue;
    const clip = holder(parent, ['auto', 'scroll', 'hidden', 'clip']);
    const scrolls = clip && ['auto', 'scroll'].includes(getComputedStyle(clip).overflowX);
    const within = clip?.getBoundingClientRect();
    // A box of no size is how words are kept for those who hear the page.
    if (!scrolls && !(within?.width <= 1) && box.right > (within ? within.right + 0.5 : edge))
        found.push(told(text, box));
}
return found;
"""
_CUT_LABELS = """
const found = [];
for (const picture of document.querySelectorAll('svg')) {
    const frame = picture.getBoundingClientRect();
    if (!picture.checkVisibility() || frame.width === 0) continue;
    for (const label of picture.querySelectorAll('text')) {
        const box = label.getBoundingClientRect();
        if (!label.textContent.trim() || getComputedStyle(label).opacity === '0' || box.width === 0) continue;
        if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
            || box.bottom > frame.bottom + 1)
            found.push(`${picture.closest('[id]')?.id ?? 'body'}: ${label.textContent.slice(0, 40)}`);
    }
}
return found;
"""
# What a text of the data could have become, had it been taken for HTML.
_MADE_OF_TEXT = """
const found = (window.alerted ?? []).map(text => `alert: ${text}`);
for (const element of document.querySelectorAll('img, iframe, object, embed, base, link, svg script'))
    found.push(element.outerHTML.slice(0, 80));
for (const element of document.querySelectorAll('*'))
    for (const { name } of element.attributes)
        if (name.startsWith('on')) found.push(`${element.nodeName} has ${name}`);
for (const { textContent } of document.scripts)
    if (/^\\s*alert/.test(textContent)) found.push(`script: ${textContent.slice(0, 40)}`);
return found;
"""
_RUN_AXE = """
const rules = Object.fromEntries(arguments[0].map(rule => [rule, { enabled: false }]));
return axe.run(document, { rules, resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(
    ({ id, impact, nodes }) => nodes.map(({ target, failureSummary }) =>
        `${id} (${impact}): ${target.join(' ')}: ${failureSummary.split('\\n').slice(1).join(' ').trim()}`)));
"""


def stands_out(shown: Browser) -> list[str]:
    """Return elements and texts that exceed the window, or a box that hides the rest.

    The content of a scrolling box may have any width, but not the box itself.
    """
    return list(shown.ask(_STANDS_OUT))


def cut_labels(shown: Browser) -> list[str]:
    """Texts of pictures that their picture cuts off."""
    return list(shown.ask(_CUT_LABELS))


def made_of_text(shown: Browser) -> list[str]:
    """Elements, scripts and messages that a name in the data could have brought about."""
    return list(shown.ask(_MADE_OF_TEXT))


def barriers(shown: Browser, without: Sequence[str] = ()) -> list[str]:
    """Return the findings of axe-core on accessibility, by all its rules except the named ones."""
    shown.ask(f"if (!window.axe) {{ {_axe()} }}")
    return list(shown.ask(_RUN_AXE, list(without)))


def _axe() -> str:
    return (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


def faults(shown: Browser, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the findings of all checks by name, except for some rules of axe-core."""
    looks = {
        "complaints": shown.complaints(),
        "requests": shown.requests(),
        "stands_out": stands_out(shown),
        "cut_labels": cut_labels(shown),
        "made_of_text": made_of_text(shown),
        "barriers": barriers(shown, without),
    }
    return {name: found for name, found in looks.items() if found}
