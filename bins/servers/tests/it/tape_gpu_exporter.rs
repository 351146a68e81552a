//! The real `tape-gpu-exporter` over a driver library that the test compiles, read back as a client reads it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::Parser as _;
use tapedeck_metrics::gpu::{GpuDevice, GpuProcess, from_dcgm_page};
use tapedeck_metrics::parse;
use tapedeck_record::{ExitCode, GpuReading};
use tapedeck_tape_bins::doctor;
use tempfile::TempDir;

use crate::served::{Served, get};

/// A folder with the library and the file that tells it how to misbehave.
struct Driver(TempDir);

impl Driver {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/nvml.c");
        let library = folder.path().join("libnvidia-ml.so.1");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(library).arg(source).status();
        assert!(built.unwrap().success(), "no C compiler, or the library is broken");
        let driver = Self(folder);
        driver.tell("");
        driver
    }

    fn words(&self) -> PathBuf {
        self.0.path().join("words")
    }

    fn tell(&self, words: &str) {
        // Whole or not at all: the library may be reading.
        let beside = self.0.path().join("words.part");
        std::fs::write(&beside, words).unwrap();
        std::fs::rename(beside, self.words()).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tape-gpu-exporter"));
        command.env("LD_LIBRARY_PATH", self.0.path()).env("FAKE_NVML", self.words()).args(args);
        command
    }

    fn once(&self) -> Output {
        self.command(&["--once"]).output().unwrap()
    }

    fn start(&self, args: &[&str]) -> Exporter {
        Exporter(Served::start(self.command(&["--listen", "127.0.0.1:0"]).args(args)))
    }
}

/// A running `tape-gpu-exporter`.
struct Exporter(Served);

impl Exporter {
    /// Status and body of a page.
    fn get(&self, path: &str) -> (u16, String) {
        let answer = get(self.0.address(), path);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Asks until the answer is another one than before: readings are shared for a fifth of a second.
    fn until(&self, path: &str, status: u16) -> String {
        for _ in 0..1000 {
            let (found, body) = self.get(path);
            if found == status {
                return body;
            }
            // The exporter is another process: nothing tells when its reading has become old.
            let _ = Command::new("sleep").arg("0.05").status();
        }
        panic!("{path} never answers {status}");
    }
}

#[test]
fn every_figure_of_every_card_is_read_back() {
    let driver = Driver::new();
    let exporter = driver.start(&[]);
    assert_eq!(exporter.0.ready["gpus"], serde_json::json!(["GPU-aaaa", "GPU-bbbb", "GPU-cccc"]));
    let (status, page) = exporter.get("/metrics");
    assert_eq!(status, 200);
    let gpus = from_dcgm_page(&parse(&page)).unwrap();
    let why =
        |pairs: &[(&'static str, &str)]| pairs.iter().map(|(field, why)| (*field, (*why).into())).collect();
    let (unsupported, barred) = (
        "the requested operation is not available on the target device",
        "the current user does not have permission to perform this operation",
    );
    let whole = GpuDevice {
        id: "GPU-aaaa".into(),
        name: Some("NVIDIA A40".into()),
        driver: Some("550.54.15".into()),
        mig: Some(false),
        reading: GpuReading {
            utilisation: Some(0.37),
            memory_used_bytes: Some(41_234_567_890),
            memory_total_bytes: Some(48_305_799_168),
            power_w: Some(61.234),
            temperature_c: Some(40.0),
            sm_clock_mhz: Some(1740.0),
            throttle: vec!["sw_power_cap".into(), "hw_thermal".into()],
        },
        not_available: why(&[]),
        processes: vec![
            GpuProcess { pid: 101, name: Some("/opt/vllm/bin/python3".into()), memory_bytes: Some(13 << 30) },
            GpuProcess { pid: 202, name: None, memory_bytes: None },
        ],
    };
    // The whole card is barred, its two slices are not: their memory adds up, their utilisation does not.
    let sliced = GpuDevice {
        id: "GPU-bbbb".into(),
        name: Some("NVIDIA A100-SXM4-80GB".into()),
        mig: Some(true),
        reading: GpuReading {
            memory_used_bytes: Some(3 << 20),
            memory_total_bytes: Some(20 << 30),
            power_w: Some(0.0),
            temperature_c: Some(41.0),
            sm_clock_mhz: Some(1740.0),
            ..GpuReading::default()
        },
        not_available: why(&[("utilisation", unsupported), ("processes", barred)]),
        processes: vec![],
        ..whole.clone()
    };
    let old = GpuDevice {
        id: "GPU-cccc".into(),
        name: Some("NVIDIA GT 710".into()),
        mig: None,
        reading: GpuReading {
            memory_used_bytes: Some(3 << 20),
            memory_total_bytes: Some(1 << 30),
            temperature_c: Some(42.0),
            ..GpuReading::default()
        },
        not_available: why(&[
            ("utilisation", unsupported),
            ("power_w", unsupported),
            ("sm_clock_mhz", unsupported),
            ("throttle", unsupported),
            ("processes", unsupported),
        ]),
        processes: vec![],
        ..whole.clone()
    };
    assert_eq!(gpus, [whole, sliced, old]);
    assert_eq!(exporter.get("/health"), (200, String::new()));
    assert_eq!(exporter.get("/").0, 404);
    exporter.0.terminate();
    assert_eq!(exporter.0.wait().0, Some(0));
}

#[test]
fn a_lost_card_keeps_its_name_and_comes_back() {
    let driver = Driver::new();
    let exporter = driver.start(&[]);
    driver.tell("lost");
    let unwell = exporter.until("/health", 503);
    assert!(unwell.starts_with("GPU-aaaa: ") && unwell.contains("fell off the bus"), "{unwell}");
    let (status, page) = exporter.get("/metrics");
    let gpus = from_dcgm_page(&parse(&page)).unwrap();
    assert_eq!((status, gpus.len(), gpus[0].id.as_str()), (200, 3, "GPU-aaaa"));
    assert!(gpus[0].why_unreadable().unwrap().contains("fell off the bus"), "{:?}", gpus[0]);
    assert_eq!(gpus[0].reading, GpuReading::default());
    assert_eq!(gpus[1].reading.temperature_c, Some(41.0));
    driver.tell("");
    exporter.until("/health", 200);
}

#[test]
fn the_doctor_shows_what_the_page_tells() {
    let driver = Driver::new();
    let exporter = driver.start(&[]);
    let url = format!("http://{}/metrics", exporter.0.address());
    let cli = doctor::Cli::try_parse_from(["tape-doctor", "metrics", &url]).unwrap();
    let mut out = Vec::new();
    assert_eq!(doctor::run(&cli, &mut out).unwrap(), ExitCode::Ok);
    let text = String::from_utf8(out).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "3 GPU(s)",
        "GPU-bbbb (NVIDIA A100-SXM4-80GB, cut into MIG slices)",
        "utilisation not available the requested operation is not available on the target device",
        "throttle sw_power_cap, hw_thermal",
        "process 101 13958643712 /opt/vllm/bin/python3",
        "process 202 not available",
    ] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    driver.tell("none");
    let said = exporter.until("/metrics", 503);
    assert_eq!(said, "GPU not available: the driver knows no GPU\n");
    let mut out = Vec::new();
    assert_eq!(doctor::run(&cli, &mut out).unwrap(), ExitCode::Environment);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("answers 503 (GPU not available: the driver knows no GPU)"), "{text}");
}

#[test]
fn a_driver_that_hangs_is_said_and_holds_nobody_up() {
    let driver = Driver::new();
    let exporter = driver.start(&["--patience-s", "0.2"]);
    driver.tell("hang");
    let said = exporter.until("/metrics", 503);
    assert!(said.contains("the driver has not answered"), "{said}");
    // It hangs for a minute; ending takes no such time, or the limit of the next line would be met.
    let mut exporter = exporter;
    exporter.0.terminate();
    for _ in 0..3000 {
        if let Some(status) = exporter.0.ended() {
            assert_eq!(status.code(), Some(0));
            return;
        }
        // The exporter is another process: there is nothing to wait on but its end.
        std::thread::yield_now();
        let _ = Command::new("sleep").arg("0.01").status();
    }
    panic!("it waits for its driver");
}

#[test]
fn once_prints_the_page_and_no_driver_is_an_environment_failure() {
    let driver = Driver::new();
    let output = driver.once();
    assert_eq!(output.status.code(), Some(0));
    let page = String::from_utf8(output.stdout).unwrap();
    assert_eq!(from_dcgm_page(&parse(&page)).unwrap().len(), 3);
    for (words, said) in [("unloaded", "driver is not loaded"), ("none", "knows no GPU")] {
        driver.tell(words);
        let output = driver.once();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{error}");
        assert!(error.contains(said) && error.contains("on their host"), "{error}");
    }
    // Without the library it is the same answer; a machine that has the real one answers with a page.
    let bare = tempfile::tempdir().unwrap();
    let output = driver.command(&["--once"]).env("LD_LIBRARY_PATH", bare.path()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() || error.contains("no NVIDIA driver library on this machine"), "{error}");
}
