//! Theory and measurement side by side.
#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use tapedeck_sizing::kv::{TAPE_A_S, tape};
use tapedeck_sizing::{Card, InstanceSeen, LoadPoint, PoolSource, Seen, Session, Theory, calibrate};

fn theory() -> Theory {
    Theory {
        card: Card::a40_qwen3_asr_0_6b(),
        topology: Some("3x0.30".parse().unwrap()),
        token_bytes: 114_688,
        tape: tape(&Session::plan(), 114_688, &TAPE_A_S).unwrap(),
    }
}

fn seen(per_stream: f64) -> Seen {
    let instances = (1..=3)
        .map(|n| InstanceSeen {
            name: format!("inst{n}"),
            pool_tokens: Some(90_000),
            pool_source: Some(PoolSource::Log),
        })
        .collect();
    let points = [3.0, 6.0, 12.0, 24.0, 36.0]
        .iter()
        .map(|&streams| LoadPoint { streams, kv_mean: per_stream * streams / 270_000.0, n: 480 })
        .collect();
    Seen { instances, points, used_bytes: None }
}

#[test]
fn a_known_slope_is_found_again() {
    let calibration = calibrate(&theory(), &seen(850.0)).unwrap();
    let row = calibration.row("stream_tokens").unwrap();
    assert!((row.measured.unwrap() - 850.0).abs() < 1e-6);
    let (low, high) = row.interval.unwrap();
    assert!(high - low < 1e-3 && row.n == Some(5));
    let pool = calibration.row("pool_tokens").unwrap();
    assert_eq!(pool.measured, Some(90_000.0));
    assert!((pool.theory.unwrap() - 10.6e9 / 114_688.0).abs() < 1e-6);
    assert!(calibration.row("idle_tokens").unwrap().measured.unwrap().abs() < 1e-6);
}

#[test]
fn the_overhead_is_what_is_left_of_the_memory_used() {
    let used = 3.0 * (1.8e9 + 2.6e9 + 90_000.0 * 114_688.0);
    let calibration = calibrate(&theory(), &Seen { used_bytes: Some(used), ..seen(850.0) }).unwrap();
    assert!((calibration.row("overhead_gb").unwrap().measured.unwrap() - 2.6).abs() < 1e-9);
}

#[test]
fn what_cannot_be_known_stays_empty() {
    let mut silent = seen(850.0);
    silent.instances[1].pool_tokens = None;
    let calibration = calibrate(&theory(), &silent).unwrap();
    for figure in ["pool_tokens", "pool_gb", "stream_tokens", "stream_mb", "overhead_gb"] {
        let row = calibration.row(figure).unwrap();
        assert_eq!((row.measured, row.interval, row.n), (None, None, None), "{figure}");
        assert!(!row.note.to_string().is_empty());
    }
    let mut few = seen(850.0);
    few.points.truncate(2);
    assert_eq!(calibrate(&theory(), &few).unwrap().row("stream_mb").unwrap().measured, None);
    let nowhere = Theory { topology: None, ..theory() };
    assert_eq!(calibrate(&nowhere, &seen(1.0)).unwrap().row("pool_gb").unwrap().theory, None);
    assert!(calibrate(&theory(), &Seen::default()).is_err(), "no instance");
    let mut broken = seen(850.0);
    broken.points[0].kv_mean = f64::NAN;
    assert!(calibrate(&theory(), &broken).is_err());
}
