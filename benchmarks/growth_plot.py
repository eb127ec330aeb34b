"""An SVG plot of measured points with the line through their means."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 360, 70, 50, 40

Point = tuple[float, float]


def plot(title: str, x_label: str, y_label: str, series: dict[str, Sequence[Point]]) -> str:
    """Return a plot of some series of points, with axes that start at zero."""
    colors = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd"]
    points = [point for series_points in series.values() for point in series_points]
    across, up = max(x for x, _ in points) * 1.05, max(y for _, y in points) * 1.1

    def place(point: Point) -> Point:
        x, y = point
        return (
            LEFT + x / across * (WIDTH - LEFT - 20),
            HEIGHT - BOTTOM - y / up * (HEIGHT - BOTTOM - TOP),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 20, title, "middle", size=15),
        _text(WIDTH / 2, HEIGHT - 10, x_label, "middle"),
        f'<text x="18" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 18 {HEIGHT / 2})">{y_label}</text>',
    ]
    for step in range(6):
        (x, bottom), (left_x, y) = place((across / 5 * step, 0)), place((0, up / 5 * step))
        parts += [
            f'<line x1="{left_x:.1f}" y1="{y:.1f}" x2="{WIDTH - 20}" y2="{y:.1f}" stroke="#ddd"/>',
            _text(left_x - 6, y + 4, f"{up / 5 * step:.4g}", "end"),
            _text(x, bottom + 18, f"{across / 5 * step:.0f}", "middle"),
        ]
    for number, (name, series_points) in enumerate(series.items()):
        color = colors[number % len(colors)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, series_points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>' for x, y in map(place, series_points)]
        parts.append(_text(LEFT + 15, TOP + 18 * (number + 1), name, "start", color=color))
    return "\n".join([*parts, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 12, color: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{color}">{text}</text>'
