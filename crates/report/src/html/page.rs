//! Parts of a page: escaped text, head, tables and lists.

use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// Escapes text for HTML.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character if character.is_control() && character != '\n' => {
                escaped.extend(character.escape_default())
            }
            character => escaped.push(character),
        }
    }
    escaped
}

/// End of a page.
pub(super) const END: &str = "</main>\n</body>\n</html>\n";

/// Writes the head of a page and its title, which must be escaped already.
pub(super) fn begin(page: &mut String, title: &str) {
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
}

/// Begins a fragment to be embedded in another page without changing that page's style.
pub(super) fn begin_fragment(page: &mut String) {
    let style = STYLE.replace(":root", ":scope").replace("\nbody {", "\n:scope {");
    let _ = write!(
        page,
        "<div class=\"evenkeel\">\n<style>\n@scope (.evenkeel) {{\n{style}}}\n</style>\n<main>\n"
    );
}

/// End of an embedded fragment.
pub(super) const END_OF_FRAGMENT: &str = "</main>\n</div>\n";

/// Writes a table; numbers are aligned to the right if the heading begins with `#`.
pub(super) fn table(page: &mut String, headings: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    page.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    let class = |heading: &str| if heading.starts_with('#') { " class=\"n\"" } else { "" };
    for heading in headings {
        let _ = write!(page, "<th{}>{}</th>", class(heading), escape(heading.trim_start_matches('#')));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (cell, heading) in row.iter().zip(headings) {
            let _ = write!(page, "<td{}>{}</td>", class(heading), escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

pub(super) fn list(page: &mut String, lines: &[String]) {
    page.push_str("<ul>\n");
    for line in lines {
        let _ = writeln!(page, "<li>{}</li>", escape(line));
    }
    page.push_str("</ul>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_data_cannot_become_markup() {
        assert_eq!(
            escape("<script>\"a\" & 'b'\u{0}</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\\u{0}&lt;/script&gt;"
        );
    }
}
