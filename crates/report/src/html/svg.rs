//! Draws charts as SVG.

use std::fmt::Write as _;

use crate::grid::{count, percent};
use crate::html::page::escape;
use crate::values::key_text;
use evenkeel_advisor::evaluate::HeavyHitter;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 160.0;
/// Maximum number of partitions with separate bars; beyond it, neighbours share the bar of the
/// fullest of them.
const MAX_BARS: usize = 240;
/// Characters of a value that fit next to its bar.
const LABEL: usize = 24;

/// Draws the rows per partition as bars, with the band of chance around their mean.
pub(super) fn partition_bars(rows: &[u64], expected_cv: f64) -> String {
    let together = rows.len().div_ceil(MAX_BARS).max(1);
    let bars: Vec<u64> =
        rows.chunks(together).map(|chunk| chunk.iter().copied().max().unwrap_or(0)).collect();
    let mean = rows.iter().sum::<u64>() as f64 / rows.len().max(1) as f64;
    let high = mean * (1.0 + 2.0 * expected_cv);
    let most = bars.iter().copied().max().unwrap_or(0) as f64;
    let scale = HEIGHT / most.max(high).max(1.0);
    let y = |rows: f64| HEIGHT - rows * scale;
    let width = WIDTH / bars.len().max(1) as f64;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"rows per partition\">\n",
        HEIGHT + 18.0
    );
    let low = mean * (1.0 - 2.0 * expected_cv).max(0.0);
    let _ = writeln!(
        svg,
        "<rect class=\"band\" x=\"0\" y=\"{:.1}\" width=\"{WIDTH}\" height=\"{:.1}\"/>",
        y(high),
        (high - low) * scale
    );
    for (index, rows) in bars.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<rect class=\"bar\" x=\"{:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\"><title>partition {}: {} rows</title></rect>",
            index as f64 * width + width * 0.08,
            y(*rows as f64),
            width * 0.84,
            *rows as f64 * scale,
            index * together,
            count(*rows)
        );
    }
    let _ =
        writeln!(svg, "<line class=\"mean\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>", y(mean));
    let _ = writeln!(svg, "<text class=\"soft\" x=\"0\" y=\"{:.0}\">0</text>", HEIGHT + 14.0);
    let _ = writeln!(
        svg,
        "<text class=\"soft\" x=\"{WIDTH}\" y=\"{:.0}\" text-anchor=\"end\">{}; mean {} rows</text>\n</svg>",
        HEIGHT + 14.0,
        rows.len().saturating_sub(1),
        count(mean.round() as u64)
    );
    svg
}

/// Draws the distinct keys per partition as bars on a logarithmic scale, with the band of 100 to
/// 1000.
pub(super) fn keys_per_partition(keys: &[(String, f64)]) -> String {
    const ROW: f64 = 18.0;
    const LEFT: f64 = 230.0;
    const FULL: f64 = 720.0;
    // From a tenth of a key to ten million; values outside end at the edges.
    let x = |value: f64| LEFT + (value.max(0.1).log10() + 1.0).clamp(0.0, 8.0) / 8.0 * (FULL - LEFT - 70.0);
    let height = ROW * keys.len() as f64;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {FULL} {height:.0}\" role=\"img\" aria-label=\"distinct values for each partition\">\n"
    );
    let _ = writeln!(
        svg,
        "<rect class=\"band\" x=\"{:.1}\" y=\"0\" width=\"{:.1}\" height=\"{height:.0}\"/>",
        x(100.0),
        x(1000.0) - x(100.0)
    );
    for (index, (name, value)) in keys.iter().enumerate() {
        let top = index as f64 * ROW;
        let mut label: String = name.chars().take(LABEL + 4).collect();
        if name.chars().count() > LABEL + 4 {
            label.push('…');
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect class=\"bar\" x=\"{LEFT}\" y=\"{:.1}\" \
             width=\"{:.1}\" height=\"{:.1}\"/><text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\">{value:.1}</text>",
            LEFT - 6.0,
            top + ROW * 0.72,
            escape(&label),
            top + 3.0,
            (x(*value) - LEFT).max(0.5),
            ROW - 6.0,
            x(*value) + 4.0,
            top + ROW * 0.72,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws the heaviest values as bars, with a line at the even share.
pub(super) fn heavy_values(hitters: &[HeavyHitter], even_share: f64) -> String {
    const ROW: f64 = 18.0;
    const LEFT: f64 = 190.0;
    const RIGHT: f64 = 60.0;
    if hitters.first().is_none_or(|heaviest| heaviest.rows <= 1) {
        return format!(
            "<svg viewBox=\"0 0 {WIDTH} {ROW}\"><text x=\"0\" y=\"13\">No value occurs twice.</text></svg>\n"
        );
    }
    let most = hitters.first().map_or(0.0, |hitter| hitter.share).max(even_share).max(f64::MIN_POSITIVE);
    let scale = (WIDTH - LEFT - RIGHT) / most;
    let height = ROW * hitters.len().max(1) as f64;
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"heaviest values\">\n");
    for (index, hitter) in hitters.iter().enumerate() {
        let top = index as f64 * ROW;
        let value = key_text(&hitter.key);
        let mut label: String = value.chars().take(LABEL).collect();
        if value.chars().count() > LABEL {
            label.push('…');
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}<title>{}</title></text>\
             <rect class=\"bar\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
             <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 6.0,
            top + ROW * 0.72,
            escape(&label),
            escape(&value),
            top + 3.0,
            (hitter.share * scale).max(0.5),
            ROW - 6.0,
            LEFT + hitter.share * scale + 4.0,
            top + ROW * 0.72,
            percent(hitter.share)
        );
    }
    let at = LEFT + even_share * scale;
    let _ = writeln!(
        svg,
        "<line class=\"mean\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{height:.0}\"/>\n</svg>"
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the values of an attribute of the elements of a class.
    fn values(svg: &str, class: &str, attribute: &str) -> Vec<f64> {
        let elements = svg.split('<').filter(|element| element.contains(&format!("class=\"{class}\"")));
        let value = |element: &str| {
            let text = element.split(&format!(" {attribute}=\"")).nth(1).unwrap().split('"').next().unwrap();
            text.parse().unwrap()
        };
        elements.map(value).collect()
    }

    #[test]
    fn bars_are_as_high_as_the_rows_of_their_partition() {
        let heights = values(&partition_bars(&[50, 100, 0, 50], 0.0), "bar", "height");
        assert_eq!(heights, [80.0, 160.0, 0.0, 80.0]);
    }

    #[test]
    fn many_partitions_share_bars_that_show_the_fullest() {
        let mut rows = vec![1; 1000];
        rows[7] = 8;
        let svg = partition_bars(&rows, 0.0);
        let heights = values(&svg, "bar", "height");
        // 1000 partitions by 5.
        assert_eq!((heights.len(), heights[0], heights[1]), (200, 20.0, 160.0));
        assert!(svg.contains("<title>partition 5: 8 rows</title>"));
    }

    #[test]
    fn no_partition_and_no_row_still_make_a_picture() {
        for rows in [&[][..], &[0, 0]] {
            let svg = partition_bars(rows, 0.1);
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn distinct_keys_are_on_a_logarithmic_scale_that_ends_at_its_edges() {
        let keys = [0.0, 0.1, 1.0, 100.0, 1e7, 1e12].map(|keys| (String::new(), keys));
        let widths = values(&keys_per_partition(&keys), "bar", "width");
        // One step of ten takes 52.5 of the 420 points.
        assert_eq!(widths, [0.5, 0.5, 52.5, 157.5, 420.0, 420.0]);
    }
}
