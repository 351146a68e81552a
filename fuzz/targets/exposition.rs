//! Pages and read-outs: whatever stands on them, the parser goes on and no figure is made up.

use tapedeck_metrics::gpu::{from_dcgm_page, from_smi_csv};
use tapedeck_metrics::{EngineKind, guess_kind, normalise, parse, pool_from_log, why_not_metrics};

/// One input.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let page = parse(&text);
    assert!(page.series.len() <= text.lines().count());
    for kind in [EngineKind::Vllm, EngineKind::Sglang, EngineKind::None] {
        let normalised = normalise(&page, kind);
        assert!(normalised.scrape.values.values().all(|value| value.is_finite()));
    }
    let _ = (why_not_metrics(&page), guess_kind(&page));
    for gpu in from_dcgm_page(&page).into_iter().chain(from_smi_csv(&text)).flatten() {
        assert!(gpu.reading.power_w.is_none_or(f64::is_finite));
        assert!(gpu.reading.utilisation.is_none_or(f64::is_finite));
    }
    let _ = pool_from_log(&text);
}
