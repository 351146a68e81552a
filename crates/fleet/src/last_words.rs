//! Why an instance died, as far as its log tells.

/// What the log of a dead engine says of its death.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastWords {
    /// Whether memory ran out, the card's or the machine's.
    pub out_of_memory: bool,
    /// The line that says so, without what stands before the message.
    pub line: String,
}

impl LastWords {
    /// In one plain sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { line, .. } = self;
        if self.out_of_memory {
            format!("it ran out of memory: {line}")
        } else {
            format!("its log says: {line}")
        }
    }
}

/// Longest line that is repeated, characters; the whole log is kept elsewhere.
const LONGEST: usize = 200;

/// The last line of a log that names a cause: memory that ran out where any line says so, else the last exception that is
/// not itself only news of the death. Nothing where no line does.
///
/// Known are PyTorch's and the Linux kernel's words for memory, and Python's for exceptions.
///
/// ```
/// let log = "INFO [loader.py:1] loaded\n\
///            (EngineCore pid=7) ERROR 11-29 16:29:59 [core.py:9] torch.OutOfMemoryError: CUDA out of memory. Tried \
///            to allocate 20.00 MiB.\n\
///            (APIServer pid=3) ERROR 11-29 16:29:59 [async_llm.py:9] EngineDeadError: EngineCore encountered an issue.\n";
/// let words = tapedeck_fleet::last_words(log).unwrap();
/// assert!(words.out_of_memory);
/// assert!(words.sentence().contains("memory: torch.OutOfMemoryError: CUDA out of memory"));
/// ```
#[must_use]
pub fn last_words(log: &str) -> Option<LastWords> {
    let memory = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["out of memory", "outofmemoryerror", "oom-kill"].iter().any(|words| line.contains(words))
    };
    let exception = |line: &&str| line.contains("Error: ") && !line.contains("EngineDeadError");
    let said = |line: &str, out_of_memory| LastWords { out_of_memory, line: message(line) };
    let memory = log.lines().rev().find(memory).map(|line| said(line, true));
    memory.or_else(|| log.lines().rev().find(exception).map(|line| said(line, false)))
}

/// A line without process, level, time and file, which logs of vLLM close with a bracket.
fn message(line: &str) -> String {
    let text =
        line.rsplit_once(".py:").and_then(|(_, rest)| rest.split_once("] ")).map_or(line, |(_, text)| text);
    text.trim().chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exception_counts_and_not_the_news_of_it() {
        let log = "(Worker pid=2) ERROR 11-29 16:29:59 [multiproc_executor.py:1063] ValueError: could not broadcast \
                   input array from shape (586,) into shape (512,)\n\
                   (Worker pid=2) ERROR 11-29 16:29:59 [multiproc_executor.py:1063] \n\
                   (APIServer pid=3) ERROR 11-29 16:29:59 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: \
                   EngineCore encountered an issue. See stack trace (above) for the root cause.\n";
        let words = last_words(log).unwrap();
        assert!(!words.out_of_memory);
        assert_eq!(
            words.sentence(),
            "its log says: ValueError: could not broadcast input array from shape (586,) into shape (512,)"
        );
    }

    #[test]
    fn the_kernel_is_understood_too() {
        let log =
            "Nov 29 16:30:00 gpu-host kernel: Out of memory: Killed process 4711 (python3) total-vm:99kB\n";
        assert!(last_words(log).unwrap().out_of_memory);
    }

    #[test]
    fn a_log_without_a_cause_has_no_last_words() {
        assert_eq!(last_words(""), None);
        assert_eq!(last_words("INFO [loader.py:1] loaded\nGPU KV cache size: 65,536 tokens\n"), None);
    }
}
