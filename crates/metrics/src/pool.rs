//! The KV pool of an instance: what its page or its start-up log says about size and settings.

use serde::{Deserialize, Serialize};

use crate::parse::Series;

/// Size and settings of one engine's KV pool. What is not told is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PoolInfo {
    /// Size in tokens, the reserved block included.
    pub size_tokens: Option<u64>,
    /// Blocks (pages), the reserved one included.
    pub num_gpu_blocks: Option<u64>,
    /// Tokens a block.
    pub block_size: Option<u64>,
    /// How many requests of the greatest length fit at once.
    pub max_concurrency: Option<f64>,
    /// Greatest length of a request, tokens.
    pub max_model_len: Option<u64>,
    /// Whether prefix caching is on.
    pub prefix_caching: Option<bool>,
    /// Share of the GPU's memory that the engine may take, 0..1.
    pub gpu_memory_utilization: Option<f64>,
    /// Memory of the pool, bytes.
    pub kv_cache_memory_bytes: Option<u64>,
    /// How many engines (data parallel) this instance runs, each with a pool of its own; the figures above are those of
    /// the smallest pool.
    pub engines: u32,
    /// Where the figures come from, in words.
    pub source: String,
}

impl PoolInfo {
    /// Tokens that requests can use: one block is reserved, so "full" is reached one block early.
    #[must_use]
    pub fn usable_tokens(&self) -> Option<u64> {
        let size = self.size_tokens?;
        Some(self.block_size.map_or(size, |block| size.saturating_sub(block)))
    }

    /// Fills what is empty here from another reading, e.g. a page's settings with a log's size.
    pub fn fill_from(&mut self, other: &Self) {
        let before = self.clone();
        self.size_tokens = self.size_tokens.or(other.size_tokens);
        self.num_gpu_blocks = self.num_gpu_blocks.or(other.num_gpu_blocks);
        self.block_size = self.block_size.or(other.block_size);
        self.max_concurrency = self.max_concurrency.or(other.max_concurrency);
        self.max_model_len = self.max_model_len.or(other.max_model_len);
        self.prefix_caching = self.prefix_caching.or(other.prefix_caching);
        self.gpu_memory_utilization = self.gpu_memory_utilization.or(other.gpu_memory_utilization);
        self.kv_cache_memory_bytes = self.kv_cache_memory_bytes.or(other.kv_cache_memory_bytes);
        self.engines = self.engines.max(other.engines);
        if *self != before && !other.source.is_empty() {
            if self.source.is_empty() {
                self.source.clone_from(&other.source);
            } else {
                self.source = format!("{}, {}", self.source, other.source);
            }
        }
    }

    /// Whether anything at all is known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.size_tokens.is_some() || self.num_gpu_blocks.is_some() || self.prefix_caching.is_some()
    }
}

/// From the `cache_config_info` series of a vLLM page, one per engine: settings as labels, values as Python prints them.
pub(crate) fn from_cache_config(series: &[&Series]) -> Option<PoolInfo> {
    let mut smallest: Option<PoolInfo> = None;
    for one in series {
        let number = |name| one.label(name).and_then(python_number);
        let whole = |name| number(name).and_then(to_whole);
        let num_gpu_blocks = whole("num_gpu_blocks");
        let block_size = whole("block_size");
        let told = whole("kv_cache_size_tokens");
        let info = PoolInfo {
            // Before 0.24 the page has only the blocks; they include the reserved one just as the token figure does.
            size_tokens: told.or_else(|| num_gpu_blocks?.checked_mul(block_size?)),
            num_gpu_blocks,
            block_size,
            max_concurrency: number("kv_cache_max_concurrency"),
            max_model_len: None,
            prefix_caching: one.label("enable_prefix_caching").and_then(python_bool),
            gpu_memory_utilization: number("gpu_memory_utilization"),
            kv_cache_memory_bytes: whole("kv_cache_memory_bytes"),
            engines: 1,
            source: if told.is_some() {
                "cache_config_info"
            } else {
                "cache_config_info, blocks x block size"
            }
            .to_owned(),
        };
        smallest = Some(match smallest {
            Some(other) => {
                let engines = other.engines.saturating_add(1);
                let keep = if info.size_tokens < other.size_tokens { info } else { other };
                PoolInfo { engines, ..keep }
            }
            None => info,
        });
    }
    smallest
}

/// From a start-up log of any vLLM version read so far. Later lines win: after a restart only the last start counts.
///
/// ```
/// let log = "INFO [kv_cache_utils.py:2327] GPU KV cache size: 65,536 tokens, \
///            Maximum concurrency for 4,096 tokens per request: 16.00x\n";
/// let pool = tapedeck_metrics::pool_from_log(log).unwrap();
/// assert_eq!((pool.size_tokens, pool.max_model_len), (Some(65_536), Some(4_096)));
/// ```
#[must_use]
pub fn pool_from_log(log: &str) -> Option<PoolInfo> {
    let mut info = PoolInfo { source: "start-up log".to_owned(), engines: 1, ..PoolInfo::default() };
    let mut found = false;
    for line in log.lines() {
        if let Some(tokens) = number_between(line, " KV cache size: ", " tokens") {
            info.size_tokens = to_whole(tokens);
            found = true;
        }
        if let Some(length) = number_between(line, "Maximum concurrency for ", " tokens per request: ") {
            info.max_model_len = to_whole(length);
            info.max_concurrency = number_between(line, " tokens per request: ", "x");
            found = true;
        }
        // V0 counts blocks, and names the device: `# cuda blocks: 27000, # CPU blocks: 2048`.
        if let Some(blocks) =
            ["# cuda blocks: ", "# GPU blocks: "].iter().find_map(|mark| number_between(line, mark, ","))
        {
            info.num_gpu_blocks = to_whole(blocks);
            found = true;
        }
        if let Some(gib) = number_between(line, "Available KV cache memory: ", " GiB") {
            info.kv_cache_memory_bytes = to_whole((gib * 1024.0 * 1024.0 * 1024.0).round());
            found = true;
        }
    }
    found.then_some(info)
}

/// The number between two marks, thousands commas allowed.
fn number_between(line: &str, before: &str, after: &str) -> Option<f64> {
    let (_, rest) = line.split_once(before)?;
    let (number, _) = rest.split_once(after)?;
    let number = number.replace(',', "");
    number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then(|| number.parse().ok())?
}

/// A number as Python prints it; `None` and anything else is no number.
fn python_number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

fn python_bool(text: &str) -> Option<bool> {
    match text.trim() {
        "True" | "true" | "1" => Some(true),
        "False" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// A whole number that a double still holds exactly.
pub(crate) fn to_whole(number: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !(0.0..=EXACT).contains(&number) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked on the line above"
    )]
    let whole = number as u64;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn from_page(text: &str) -> PoolInfo {
        let page = parse(text);
        from_cache_config(&page.series.iter().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn python_texts_become_values_or_nothing() {
        let info = from_page(
            "c{block_size=\"16\",enable_prefix_caching=\"False\",num_gpu_blocks=\"None\",gpu_memory_utilization=\"0.92\",\
             kv_cache_memory_bytes=\"None\",kv_cache_max_concurrency=\"16.0\",kv_cache_size_tokens=\"65536\"} 1",
        );
        assert_eq!((info.size_tokens, info.num_gpu_blocks, info.block_size), (Some(65_536), None, Some(16)));
        assert_eq!((info.prefix_caching, info.gpu_memory_utilization), (Some(false), Some(0.92)));
        assert_eq!((info.kv_cache_memory_bytes, info.max_concurrency), (None, Some(16.0)));
        assert_eq!(info.usable_tokens(), Some(65_520));
    }

    #[test]
    fn pools_of_older_versions_come_from_the_blocks() {
        let info = from_page("c{block_size=\"16\",num_gpu_blocks=\"1000\"} 1");
        assert_eq!((info.size_tokens, info.usable_tokens()), (Some(16_000), Some(15_984)));
        assert!(info.source.contains("blocks"));
        assert_eq!(info.prefix_caching, None);
    }

    #[test]
    fn of_several_engines_the_smallest_pool_is_kept() {
        let info = from_page(
            "c{engine=\"0\",kv_cache_size_tokens=\"900\"} 1\nc{engine=\"1\",kv_cache_size_tokens=\"800\"} 1\n\
             c{engine=\"2\",kv_cache_size_tokens=\"900\"} 1\n",
        );
        assert_eq!((info.engines, info.size_tokens), (3, Some(800)));
    }

    #[test]
    fn logs_of_every_version_are_read() {
        let v0 =
            pool_from_log("INFO 05-01 10:00:00 [x.py:1] # cuda blocks: 27000, # CPU blocks: 2048").unwrap();
        assert_eq!((v0.num_gpu_blocks, v0.size_tokens), (Some(27_000), None));

        let older = pool_from_log(
            "(EngineCore_0 pid=7) INFO 11-29 16:21:21 [kv_cache_utils.py:634] GPU KV cache size: 123,456 tokens\n\
             (EngineCore_0 pid=7) INFO 11-29 16:21:21 [kv_cache_utils.py:637] Maximum concurrency for 4,096 tokens per \
             request: 30.14x\n(EngineCore_0 pid=7) INFO [gpu_worker.py:276] Available KV cache memory: 12.34 GiB\n",
        )
        .unwrap();
        assert_eq!((older.size_tokens, older.max_model_len), (Some(123_456), Some(4_096)));
        assert_eq!((older.max_concurrency, older.kv_cache_memory_bytes), (Some(30.14), Some(13_249_974_108)));

        for device in ["GPU", "CPU", "GPU + host"] {
            let line = format!(
                "[k.py:1] {device} KV cache size: 65,536 tokens, Maximum concurrency for 4,096 tokens per request: 16.00x"
            );
            let info = pool_from_log(&line).unwrap();
            assert_eq!((info.size_tokens, info.max_concurrency), (Some(65_536), Some(16.0)), "{device}");
        }
        let short = pool_from_log("Available KV cache memory: 5.0 GiB").unwrap();
        assert_eq!(short.kv_cache_memory_bytes, Some(5 << 30));
        assert_eq!(pool_from_log("nothing of the kind\n KV cache size: many tokens"), None);
    }

    #[test]
    fn the_last_start_in_a_log_counts() {
        let log = "GPU KV cache size: 100 tokens\nGPU KV cache size: 200 tokens\n";
        assert_eq!(pool_from_log(log).unwrap().size_tokens, Some(200));
    }

    #[test]
    fn a_log_fills_what_a_page_leaves_open() {
        let mut info =
            from_page("c{block_size=\"16\",enable_prefix_caching=\"True\",num_gpu_blocks=\"None\"} 1");
        info.fill_from(&pool_from_log("GPU KV cache size: 200 tokens").unwrap());
        assert_eq!((info.size_tokens, info.prefix_caching), (Some(200), Some(true)));
        assert!(info.source.ends_with("start-up log"), "{}", info.source);
        let same = info.clone();
        info.fill_from(&PoolInfo::default());
        assert_eq!(info, same);
    }
}
