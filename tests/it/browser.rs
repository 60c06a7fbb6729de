//! The HTML report in a real browser, where there is one.

use std::process::Command;

use crate::common::done;

/// A headless Chromium; none where it is not installed.
fn chromium() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()))
}

#[test]
fn the_report_renders_with_its_pictures_and_without_a_network() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 30000 --out {}/exports");
    done(
        dir.path(),
        "evaluate {}/exports --partition-key date(event_timestamp) --partition-key user_id --primary-key \
         event_timestamp,user_id,campaign_id --partitions 16 --queries queries --html {}/report.html",
    );
    let report = dir.path().join("report.html");
    let html = std::fs::read_to_string(&report).unwrap();
    assert!(!html.contains("http://") && !html.contains("https://") && !html.contains("<script"));
    assert_eq!(html.matches("class=\"heat\"").count(), 2);
    let Some(browser) = chromium() else {
        println!("skipped: no Chromium is installed to render the report");
        return;
    };
    let url = format!("file://{}", report.display());
    let picture = dir.path().join("report.png");
    for (width, height) in [(1100, 3000), (390, 9000)] {
        let status = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .arg(format!("--user-data-dir={}", dir.path().join(format!("profile-{width}")).display()))
            .arg(format!("--window-size={width},{height}"))
            .arg(format!("--screenshot={}", picture.display()))
            .arg(&url)
            .output()
            .unwrap();
        assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
        let mut reader = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&picture).unwrap()))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let bytes = info.color_type.samples();
        // The heat map of a moving hot spot has the brightest and the darkest of its colours.
        for colour in [[255, 245, 150], [13, 8, 60]] {
            let found = pixels.chunks(bytes).filter(|pixel| pixel[..3] == colour).count();
            assert!(found > 50, "{width}: {found} pixels of {colour:?}");
        }
    }
}
