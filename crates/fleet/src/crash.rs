//! Why an instance died, as far as its log tells.

use tapedeck_record::CrashCause;

/// Longest line that is repeated, characters; the whole log is kept elsewhere.
const LONGEST: usize = 200;

/// The last line of a log that names a cause: memory that ran out where any line says so, else the last exception that is
/// not itself only news of the death. Nothing where no line does.
///
/// Known are PyTorch's and the Linux kernel's words for memory, and Python's for exceptions.
///
/// ```
/// use tapedeck_record::CrashCause;
///
/// let log = "INFO [loader.py:1] loaded\n\
///            (EngineCore pid=7) ERROR 11-29 16:29:59 [core.py:9] torch.OutOfMemoryError: CUDA out of memory. Tried \
///            to allocate 20.00 MiB.\n\
///            (APIServer pid=3) ERROR 11-29 16:29:59 [async_llm.py:9] EngineDeadError: EngineCore encountered an issue.\n";
/// let cause = tapedeck_fleet::crash_cause(log).unwrap();
/// assert!(matches!(cause, CrashCause::OutOfMemory { line } if line.starts_with("torch.OutOfMemoryError: CUDA")));
/// ```
#[must_use]
pub fn crash_cause(log: &str) -> Option<CrashCause> {
    let memory = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["out of memory", "outofmemoryerror", "oom-kill"].iter().any(|words| line.contains(words))
    };
    let exception = |line: &&str| line.contains("Error: ") && !line.contains("EngineDeadError");
    let memory = log.lines().rev().find(memory).map(|line| CrashCause::OutOfMemory { line: message(line) });
    memory.or_else(|| {
        log.lines().rev().find(exception).map(|line| CrashCause::Exception { line: message(line) })
    })
}

/// A line without process, level, time and file, which logs of vLLM close with a bracket.
fn message(line: &str) -> String {
    let text =
        line.rsplit_once(".py:").and_then(|(_, rest)| rest.split_once("] ")).map_or(line, |(_, text)| text);
    text.trim().chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use tapedeck_l10n::Localize;

    use super::*;

    #[test]
    fn the_exception_counts_and_not_the_news_of_it() {
        let log = "(Worker pid=2) ERROR 11-29 16:29:59 [multiproc_executor.py:1063] ValueError: could not broadcast \
                   input array from shape (586,) into shape (512,)\n\
                   (Worker pid=2) ERROR 11-29 16:29:59 [multiproc_executor.py:1063] \n\
                   (APIServer pid=3) ERROR 11-29 16:29:59 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: \
                   EngineCore encountered an issue. See stack trace (above) for the root cause.\n";
        let cause = crash_cause(log).unwrap();
        assert!(matches!(cause, CrashCause::Exception { .. }));
        assert_eq!(
            cause.text().en,
            "its log says: ValueError: could not broadcast input array from shape (586,) into shape (512,)"
        );
    }

    #[test]
    fn the_kernel_is_understood_too() {
        let log =
            "Nov 29 16:30:00 gpu-host kernel: Out of memory: Killed process 4711 (python3) total-vm:99kB\n";
        assert!(matches!(crash_cause(log), Some(CrashCause::OutOfMemory { .. })));
    }

    #[test]
    fn a_log_may_name_no_cause() {
        assert_eq!(crash_cause(""), None);
        assert_eq!(crash_cause("INFO [loader.py:1] loaded\nGPU KV cache size: 65,536 tokens\n"), None);
    }
}
