//! Sentences that a run directory holds, in both languages.
//!
//! A verdict's reasons are written down in English when they are found. A report says them in Chinese too, by
//! recognising the sentence; one that is not known stands as it was written.

use crate::words::{Said, fill};

/// English pattern with `{}` for what changes, Chinese with the numbers of the places.
const SENTENCES: &[(&str, &str)] = &[
    ("client health is not judged in a rehearsal", "演练中不判定压测端自身的健康状况"),
    (
        "our own sender woke {} ms late at p99 and only {} ms are allowed; use a machine with less to do",
        "压测端发送唤醒延迟 p99 为 {0} ms，上限 {1} ms；请换一台更空闲的机器",
    ),
    (
        "our own wake lateness was not measured so nothing shows that audio was sent in time",
        "没有测到压测端的唤醒延迟，无法证明音频是按时发出的",
    ),
    (
        "the load generator used {} % of this machine's cores and {} % is the limit",
        "压测端占用了本机 {0} % 的核，上限 {1} %",
    ),
    ("the load generator's CPU use was not measured", "没有测到压测端的 CPU 占用"),
    ("{} preempted {} requests", "{0} 抢占了 {1} 个请求"),
    ("the preemption counter of {} could not be read", "读不到 {0} 的抢占计数"),
    (
        "the KV pool of {} was {} % full at p95 and {} % is the red line",
        "{0} 的 KV 池 p95 占用 {1} %，红线 {2} %",
    ),
    (
        "{} of {} pages of {} could not be read so its KV pool is unknown",
        "{2} 的 {1} 次指标采样中有 {0} 次失败，KV 池占用未知",
    ),
    ("the KV pool of {} could not be read", "读不到 {0} 的 KV 池占用"),
    (
        "the preemption red line is not applicable: these engines tell nothing about it",
        "抢占红线不适用：这些引擎不提供相关指标",
    ),
    ("{} of {} streams errored: {}", "{1} 路中有 {0} 路出错：{2}"),
    (
        "first-text p95 (basis {}) is {} s and {} s is the limit; by the estimate alone ({})",
        "首字延迟 p95（基准 {0}）为 {1} s，上限 {2} s；仅凭点估计（{3}）",
    ),
    (
        "first-text p95 (basis {}) is {} s and within {} s by the estimate alone ({})",
        "首字延迟 p95（基准 {0}）为 {1} s，未超 {2} s，但仅凭点估计（{3}）",
    ),
    (
        "first-text p95 (basis {}) is {} s and {} s is the limit ({})",
        "首字延迟 p95（基准 {0}）为 {1} s，上限 {2} s（{3}）",
    ),
    (
        "real-time factor p95 is {} and {} is the limit; by the estimate alone ({})",
        "实时率 RTF p95 为 {0}，上限 {1}；仅凭点估计（{2}）",
    ),
    (
        "real-time factor p95 is {} and within {} by the estimate alone ({})",
        "实时率 RTF p95 为 {0}，未超 {1}，但仅凭点估计（{2}）",
    ),
    ("real-time factor p95 is {} and {} is the limit ({})", "实时率 RTF p95 为 {0}，上限 {1}（{2}）"),
    (
        "final p95 (from {}) is {} s and {} s is the limit; by the estimate alone ({})",
        "终稿延迟 p95（从{0}起算）为 {1} s，上限 {2} s；仅凭点估计（{3}）",
    ),
    (
        "final p95 (from {}) is {} s and within {} s by the estimate alone ({})",
        "终稿延迟 p95（从{0}起算）为 {1} s，未超 {2} s，但仅凭点估计（{3}）",
    ),
    (
        "final p95 (from {}) is {} s and {} s is the limit ({})",
        "终稿延迟 p95（从{0}起算）为 {1} s，上限 {2} s（{3}）",
    ),
    ("the end of the audio", "音频结束"),
    ("the end of speech", "说话结束"),
    ("interval {} to {} from {} calls", "区间 {0} 至 {1}，{2} 通"),
    ("no bound", "无界"),
    (
        "the limit on {} is not applicable: the dialect does not show which audio a message answers",
        "{0} 的上限不适用：该协议看不出一条消息对应哪段音频",
    ),
    ("first-text p95 (basis {})", "首字延迟 p95（基准 {0}）"),
    ("real-time factor p95", "实时率 RTF p95"),
    ("final p95 (from {})", "终稿延迟 p95（从{0}起算）"),
    (
        "first-text latency on basis window is unknown: set server.window_ms or another slo.ttft_basis",
        "以 window 为基准的首字延迟未知：请设置 server.window_ms 或改用别的 slo.ttft_basis",
    ),
    ("no call has a first text on basis {}", "没有一通电话有以 {0} 为基准的首字"),
    ("no call has a real-time factor", "没有一通电话有实时率"),
    ("no call has a final", "没有一通电话有终稿"),
    ("{} calls have no first text on basis {}", "{0} 通没有以 {1} 为基准的首字"),
    ("the tier was given up: {}", "本档被提前放弃：{0}"),
    (
        "first-text p95 of the last minute is {} s and beyond {} s",
        "最近一分钟首字延迟 p95 为 {0} s，超过 {1} s",
    ),
    (
        "so many of the last minute's calls failed that first-text p95 is beyond {} s",
        "最近一分钟失败的电话太多，首字延迟 p95 超过 {0} s",
    ),
    ("{} of {} streams errored within the last minute", "最近一分钟 {1} 路中有 {0} 路出错"),
    ("GPU {} uses {} MiB more than without load", "GPU {0} 比空载多用 {1} MiB"),
    ("GPU {} has only {} MiB free", "GPU {0} 只剩 {1} MiB"),
    ("the tier was cut short: {}", "本档提前结束：{0}"),
    ("interrupted", "被中断"),
    ("only {} of {} counted calls were recorded", "应计入 {1} 通，只记录到 {0} 通"),
    ("no call was counted", "没有计入任何一通"),
    ("{} counted calls were cut off before their final", "{0} 通计入的电话在终稿前被切断"),
    ("no counted call proves anything", "计入的电话什么也证明不了"),
    (
        "too short to tell whether it kept getting worse: that takes four blocks of {} s",
        "时间太短，无法判断是否持续变差：至少需要四段 {0} s",
    ),
    (
        "lag grows by {} ms per minute of a call's age which adds up to {} s over the longest call of {} s",
        "欠账延迟随通话时长每分钟增长 {0} ms，最长 {2} s 的电话累计 {1} s",
    ),
    (
        "{} kept rising while the tier ran: by {} over {} blocks (p = {} after correction)",
        "{0} 在本档运行期间持续上升：{2} 段内上升 {1}（校正后 p = {3}）",
    ),
    (
        "the prefix cache of {} answered {} % of its look-ups and {} % is the limit; turn it off or set tape.unique_per_session",
        "{0} 的前缀缓存命中率 {1} %，上限 {2} %；请关闭它或设置 tape.unique_per_session",
    ),
    (
        "the multimodal cache of {} answered {} % of its look-ups and {} % is the limit; turn it off or set tape.unique_per_session",
        "{0} 的多模态缓存命中率 {1} %，上限 {2} %；请关闭它或设置 tape.unique_per_session",
    ),
    (
        "the prefix cache of {} made no look-ups that could be read and its page does not say that it is off",
        "读不到 {0} 前缀缓存的查询数，其指标页也没有说明它已关闭",
    ),
    ("{} restarted {} times: its counters were bridged", "{0} 重启了 {1} 次：计数已接续"),
    ("{} pages of {} could not be read", "{1} 有 {0} 次指标采样失败"),
    ("the multimodal cache's hit rate of {} is unknown", "{0} 的多模态缓存命中率未知"),
    ("{} calls lost their last words: a segment was never made final", "{0} 通丢了结尾：有一段始终没有定稿"),
    ("{} calls ended without a word", "{0} 通结束时没有任何文字"),
    ("{} calls were left out because our own sender was late", "{0} 通因压测端自身发送迟到而未计入"),
    (
        "quality alarm: CER {} and WER {} against the single-stream baseline",
        "质量告警：相对单路基线，CER {0}，WER {1}",
    ),
    ("{} calls outside the counted window errored", "计入窗口之外有 {0} 通出错"),
    ("the server broke its dialect's rules {} times", "服务端违反协议约定 {0} 次"),
    ("the instances did not come to rest after the tier", "本档结束后实例没有排空"),
    (
        "{} streams were delivered and the servers saw {} open sessions",
        "压测端送达 {0} 路，服务端看到 {1} 个会话",
    ),
    ("one stream only: intervals come from order statistics alone", "只有一路：区间仅来自次序统计量"),
    ("no drift: draining between tiers is enough", "无漂移：档间排空即可，不必重启"),
    ("drift: {}", "有漂移：{0}"),
    ("not decidable: no figure is known both times", "无法判定：没有一个指标两次都已知"),
    ("memory leaks: {}", "存在内存泄漏：{0}"),
    ("no leak: {}", "无泄漏：{0}"),
    ("memory rose by steps and not steadily: {}", "内存台阶式上升而非持续上升：{0}"),
    ("{} MiB per hour (interval {} to {}) over {} h", "每小时 {0} MiB（区间 {1} 至 {2}），历时 {3} h"),
    ("too few readings to tell whether memory leaks", "读数太少，无法判断是否泄漏"),
];

/// The sentence in both languages; unknown ones stay as they are.
pub(crate) fn recorded(sentence: &str) -> Said {
    Said { en: sentence.to_owned(), zh: chinese(sentence, 0).unwrap_or_else(|| sentence.to_owned()) }
}

fn chinese(sentence: &str, depth: u8) -> Option<String> {
    SENTENCES.iter().find_map(|(english, chinese)| {
        let parts = matched(english, sentence)?;
        // What stands in a place may be a sentence of its own.
        let said: Vec<String> = parts
            .into_iter()
            .map(|p| match depth {
                0..3 => self::chinese(p, depth + 1).unwrap_or_else(|| p.to_owned()),
                _ => p.to_owned(),
            })
            .collect();
        Some(fill(chinese, &said.iter().map(String::as_str).collect::<Vec<_>>()))
    })
}

/// What stands in the places of a pattern, if the text is such a sentence.
fn matched<'a>(pattern: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut literals = pattern.split("{}");
    let mut rest = text.strip_prefix(literals.next()?)?;
    let mut places = Vec::new();
    let mut literals = literals.peekable();
    while let Some(literal) = literals.next() {
        let at = if literals.peek().is_none() {
            // The last literal ends the text.
            rest.len().checked_sub(literal.len()).filter(|_| rest.ends_with(literal))?
        } else {
            rest.find(literal)?
        };
        places.push(rest.get(..at)?);
        rest = rest.get(at + literal.len()..)?;
    }
    (rest.is_empty() && places.iter().all(|p| !p.is_empty())).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_recognised_with_what_stands_in_them() {
        let said = recorded(
            "real-time factor p95 is 0.505 and 0.5 is the limit (interval 0.503 to no bound from 432 calls)",
        );
        assert_eq!(said.zh, "实时率 RTF p95 为 0.505，上限 0.5（区间 0.503 至 无界，432 通）");
        let said = recorded("the tier was given up: 3 of 60 streams errored within the last minute");
        assert_eq!(said.zh, "本档被提前放弃：最近一分钟 60 路中有 3 路出错");
        assert_eq!(recorded("something else").zh, "something else");
    }

    #[test]
    fn no_pattern_hides_another() {
        for (english, _) in SENTENCES {
            let sample = english.replace("{}", "7");
            let first = SENTENCES.iter().find(|(e, _)| matched(e, &sample).is_some()).unwrap();
            assert_eq!(first.0, *english, "{sample} is taken for another sentence");
        }
    }
}
