//! The example makes a run like any other.

#[cfg(test)]
#[expect(dead_code, reason = "an example's main is not called by a test")]
#[path = "../examples/large.rs"]
mod large;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroUsize;
    use std::path::{Path, PathBuf};

    use tapedeck_report::data::Tables;
    use tapedeck_report::{Answer, Lang, Reading, Run, write_html};

    use super::large::make;

    #[test]
    fn what_it_makes_is_a_run_without_doubt() {
        let tmp = tempfile::tempdir().unwrap();
        let run = Run::read(&make(tmp.path(), 6_160, 11_220).unwrap()).unwrap();
        assert_eq!(run.warnings, []);
        assert_eq!(run.steps.iter().map(|s| s.calls.len()).sum::<usize>(), 6_160);
        assert_eq!(run.steps.iter().map(|s| s.series.samples).sum::<u64>(), 11_220);
        // An N* with tiers that pass and tiers that fail: the page has all its parts.
        let n_star = Answer::of(&run).short.and_then(|c| c.n_star);
        assert!(n_star.is_some_and(|n| n > 8 && n < 48), "{n_star:?}");
    }
    /// Every file of a report, its page and the integrity warnings about its run.
    fn report(run: &Path, out: &Path, reading: Reading) -> (BTreeMap<PathBuf, Vec<u8>>, String, Vec<String>) {
        let tables = Tables::create(out).unwrap();
        let run = Run::read_with(run, Some(&tables), reading).unwrap();
        let files = tables.finish(&run).unwrap();
        let page = write_html(&run, &Answer::of(&run), Lang::En, false);
        let files = files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        (files, page, run.warnings.iter().map(|warning| warning.said.en.clone()).collect())
    }

    #[test]
    fn the_report_is_the_same_whoever_reads_the_run() {
        let tmp = tempfile::tempdir().unwrap();
        let run = make(&tmp.path().join("runs"), 3_080, 11_220).unwrap();
        // Lines that are no lines, of another step, and of none: where they stand is counted through all blocks.
        for (file, odd) in
            [("calls.jsonl", "{\"step\":\"elsewhere\",\"n\":1}"), ("series.jsonl", "{\"step\":7")]
        {
            let path = run.join(file);
            let mut lines: Vec<String> =
                std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
            for at in [2_000, 2_900] {
                // As long as what stood there: the journal goes by bytes.
                let width = lines[at].len();
                lines[at] = format!("{odd:width$}");
            }
            lines.push(odd.to_owned());
            std::fs::write(&path, lines.join("\n")).unwrap();
        }
        let bytes = |n: usize| NonZeroUsize::new(n).unwrap();
        let with = |name: &str, workers: usize, block_bytes: usize| {
            let reading = Reading { workers: bytes(workers), block_bytes: bytes(block_bytes) };
            let (files, page, warnings) = report(&run, &tmp.path().join(name), reading);
            let names = |path: PathBuf| path.file_name().unwrap().to_os_string();
            let files: BTreeMap<_, _> = files.into_iter().map(|(path, bytes)| (names(path), bytes)).collect();
            (files, page, warnings)
        };
        let (files, page, warnings) = with("one", 1, 50_000);
        assert!(files.len() >= 3 && files.values().all(|bytes| bytes.len() > 1_000), "{:?}", files.keys());
        assert!(
            warnings.iter().any(|said| said.contains("series.jsonl") && said.contains("2001")),
            "{warnings:?}"
        );
        assert!(warnings.len() >= 4, "{warnings:?}");
        for (name, workers) in [("two", 2), ("five", 5)] {
            assert_eq!(
                with(name, workers, 50_000),
                (files.clone(), page.clone(), warnings.clone()),
                "{name}"
            );
        }
        // Blocks end anywhere; a Parquet file has a part for each of them.
        let csv = |files: &BTreeMap<std::ffi::OsString, Vec<u8>>| -> Vec<Vec<u8>> {
            let csv = files.iter().filter(|(name, _)| name.to_string_lossy().ends_with(".csv"));
            csv.map(|(_, bytes)| bytes.clone()).collect()
        };
        for (name, block_bytes) in [("small", 7_000), ("whole", 100_000_000)] {
            let other = with(name, 2, block_bytes);
            assert!(csv(&other.0) == csv(&files) && other.1 == page && other.2 == warnings, "{name}");
        }
    }
}
