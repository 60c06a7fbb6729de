//! Draws partitions over time: one pixel for each window and partition, as bright as the partition
//! is hot.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use evenkeel_advisor::evaluate::Window;
use evenkeel_model::units::Micros;

/// Maximum number of consecutive windows that are drawn with the gaps between them.
const MAX_WITH_GAPS: i64 = 2000;
/// Minimum height of the picture on the page, in pixels, so that few partitions are visible, too.
const MIN_HEIGHT: usize = 160;
const MAX_HEIGHT: usize = 420;

/// Colours from no rows over the even share to all rows, dark blue to yellow; the first one marks
/// windows without rows.
const COLOURS: [[u8; 3]; 9] = [
    [128, 128, 128],
    [13, 8, 60],
    [33, 55, 120],
    [42, 100, 150],
    [40, 145, 140],
    [94, 190, 100],
    [190, 215, 60],
    [250, 180, 40],
    [255, 245, 150],
];
/// Upper ends of the shares for colours 1 to 7, as multiples of the even share; colour 8 is for
/// more.
const STEPS: [f64; 7] = [0.0, 0.5, 0.9, 1.2, 2.0, 4.0, 8.0];
const WORDS: [&str; 9] = [
    "no rows at that time",
    "none",
    "to 0.5",
    "to 0.9",
    "to 1.2",
    "to 2",
    "to 4",
    "to 8",
    "more than 8 times the even share",
];

/// Returns the colour of a partition with `rows` of the `of_window` rows of a window.
fn colour(rows: u64, of_window: u64, partitions: usize) -> u8 {
    if of_window == 0 {
        return 0;
    }
    let times_even = rows as f64 * partitions as f64 / of_window as f64;
    let above = STEPS.iter().take_while(|step| times_even > **step).count();
    // At most 8.
    above as u8 + 1
}

/// Draws windows from left to right, and partitions from top to bottom.
pub(super) fn heat_map(windows: &[Window], partitions: usize, length: Micros) -> String {
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else { return String::new() };
    let span = last.number - first.number + 1;
    let gaps = span <= MAX_WITH_GAPS;
    let width = if gaps { usize::try_from(span).unwrap_or(windows.len()) } else { windows.len() };
    let mut pixels = vec![0u8; width * partitions];
    for (index, window) in windows.iter().enumerate() {
        let column =
            if gaps { usize::try_from(window.number - first.number).unwrap_or(index) } else { index };
        let all: u64 = window.rows_per_partition.iter().sum();
        for (partition, rows) in window.rows_per_partition.iter().enumerate() {
            if let Some(pixel) = pixels.get_mut(partition * width + column) {
                *pixel = colour(*rows, all, partitions);
            }
        }
    }
    let Some(png) = encode(&pixels, width, partitions) else { return String::new() };
    let height = partitions.clamp(1, MAX_HEIGHT).max(MIN_HEIGHT);
    format!(
        "<img class=\"heat\" style=\"height:{height}px\" alt=\"rows of {partitions} partitions in {} windows of {length}\" \
         src=\"data:image/png;base64,{}\">\n{}",
        windows.len(),
        STANDARD.encode(png),
        legend()
    )
}

/// Draws ranges of keys from top to bottom, and time from left to right. The colour of a pixel
/// compares its rows with an even share of its slice of time.
pub(super) fn key_heat_map(cells: &[Vec<u32>]) -> String {
    let width = cells.first().map_or(0, Vec::len);
    let of_slice = |slice: usize| -> u64 {
        cells.iter().filter_map(|row| row.get(slice)).map(|rows| u64::from(*rows)).sum()
    };
    let sums: Vec<u64> = (0..width).map(of_slice).collect();
    let pixels: Vec<u8> = cells
        .iter()
        .flat_map(|row| row.iter().zip(&sums).map(|(rows, all)| colour(u64::from(*rows), *all, cells.len())))
        .collect();
    let Some(png) = encode(&pixels, width, cells.len()) else { return String::new() };
    format!(
        "<img class=\"heat\" style=\"height:{MIN_HEIGHT}px\" alt=\"rows of {} ranges of keys in {width} slices of time\" \
         src=\"data:image/png;base64,{}\">\n",
        cells.len(),
        STANDARD.encode(png)
    )
}

/// Returns the legend of the colours.
pub(super) fn legend() -> String {
    let entry = |([r, g, b], word): ([u8; 3], &str)| {
        format!("<span><i style=\"background:rgb({r},{g},{b})\"></i>{word}</span>")
    };
    let entries: String = COLOURS.into_iter().zip(WORDS).map(entry).collect();
    format!("<div class=\"scale\">{entries}</div>\n")
}

/// Encodes pixels as a PNG with a palette.
fn encode(pixels: &[u8], width: usize, height: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(COLOURS.concat());
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_rise_with_the_share() {
        let colour_of = |rows| colour(rows, 1600, 16);
        assert_eq!(
            [colour_of(0), colour_of(40), colour_of(100), colour_of(190), colour_of(1600)],
            [1, 2, 4, 5, 8]
        );
        assert_eq!(colour(0, 0, 16), 0);
    }

    #[test]
    fn the_picture_has_a_pixel_for_each_window_and_partition() {
        let window = |number| Window { number, start_micros: 0, rows_per_partition: vec![1, 2, 3] };
        let html = heat_map(&[window(5), window(9)], 3, Micros::HOUR);
        let encoded = html.split("base64,").nth(1).unwrap().split('"').next().unwrap();
        let png = STANDARD.decode(encoded).unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (5, 3));
        assert_eq!(heat_map(&[], 3, Micros::HOUR), "");
    }
}
