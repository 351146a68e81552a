//! The catalogue of figures of a step: one entry a figure, with everything that is known of it.

use tapedeck_record::{CallRecord, FigureSpec, Glossary, OutcomeClass, WordCounts, figure_spec};

use crate::report::{Estimate, GpuReport, InstanceReport, QualityReport, TierReport};

/// Where the value of a figure of a step comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// A set of judged calls: the step's, or those of one part.
    Calls(fn(&[&CallRecord]) -> Option<f64>),
    /// As well, with an interval in the report of the step.
    Words(fn(&CallRecord) -> Option<WordCounts>, fn(&QualityReport) -> Option<Estimate>),
    /// The report of the step, with how much stands behind the value.
    Step(fn(&TierReport) -> Option<Estimate>),
    /// The engines' pages: one value a step, and one an instance.
    Page(fn(&TierReport) -> Option<f64>, fn(&InstanceReport) -> Option<f64>),
}

macro_rules! step_figures {
    ($($Figure:ident $id:literal from $source:expr => { $($entry:tt)* })*) => {
        /// A figure of a whole step, with everything that is known of it besides its value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum StepFigure {
            $(
                #[doc = concat!("`", $id, "`.")]
                $Figure,
            )*
        }

        impl StepFigure {
            /// Every figure of a step, in the order of tables.
            pub const ALL: &'static [Self] = &[$(Self::$Figure,)*];

            /// What is known of it besides its value.
            #[must_use]
            pub const fn spec(self) -> &'static FigureSpec {
                match self {
                    $(Self::$Figure => {
                        const SPEC: &FigureSpec = &figure_spec!($id; $($entry)*);
                        SPEC
                    })*
                }
            }

            pub(crate) const fn source(self) -> Source {
                match self {
                    $(Self::$Figure => $source,)*
                }
            }
        }
    };
}

step_figures! {
    Calls "calls" from Source::Calls(|all| Some(count(all.len()))) => {
        Count, Neither;
        name: "Calls", "通数";
        is: "judged calls, errored ones included", "参与判定的通数，含出错的";
        column: None;
    }
    Errors "errors" from Source::Calls(|all| Some(count(errors(all)))) => {
        Count, Lower;
        name: "Errored calls", "出错通数";
        is: "judged calls that errored", "参与判定且出错的通数";
        column: None;
    }
    ErrorShare "error_share" from Source::Calls(|all| share(errors(all), all.len())) => {
        Share, Lower;
        name: "Share of errored calls", "出错占比";
        is: "errored / judged calls", "出错通数 / 参与判定的通数";
        column: None;
    }
    CleanShare "clean_share" from Source::Calls(|all| share(clean(all), all.len())) => {
        Share, Higher;
        name: "Share of clean calls", "正常占比";
        is: "calls that ended ok / judged calls", "正常结束的通数 / 参与判定的通数";
        column: None;
    }
    Cer "cer" from Source::Words(|c| c.chars, |q| q.cer) => {
        Ratio, Lower;
        name: "Character error rate (CER)", "字错误率 CER";
        is: "character errors / characters of the references, over calls that have one",
            "字错误数 / 参考字数，只计有参考的通话";
        floor: 0.02;
    }
    Wer "wer" from Source::Words(|c| c.words, |q| q.wer) => {
        Ratio, Lower;
        name: "Word error rate (WER)", "错误率 WER";
        is: "word errors / words of the references, over calls that have one", "词错误数 / 参考词数，只计有参考的通话";
        floor: 0.02;
        compared: true;
        curve: Some("wer");
        glossary: Some(
            Glossary::from("calls.jsonl").named("WER, CER", "WER、CER").says(
                "Errors of words (characters) / words (characters) of the reference, pooled over calls.",
                "词（字）错误数 / 参考词（字）数，各通合并。",
            ),
        );
    }
    WerFinals "wer_finals" from Source::Words(|c| c.words_finals, |q| q.wer_finals) => {
        Ratio, Lower;
        name: "Word error rate of the finals alone", "仅终稿的错误率";
        is: "word errors of what was made final / words of the references, over calls that have one",
            "仅终稿的词错误数 / 参考词数，只计有参考的通话";
        floor: 0.02;
    }
    ThroughputPerH "throughput_per_h" from Source::Step(|r| over_calls(r, r.throughput_per_h)) => {
        PerHour, Higher;
        name: "Throughput", "吞吐";
        is: "calls an hour that ended, whatever their latency", "每小时结束的通数，不论延迟";
        glossary: Some(Glossary::from("calls.jsonl").says(
            "Counted calls per hour that ended, whatever their latency.",
            "每小时结束的计入通数，不论延迟。",
        ));
    }
    GoodputPerH "goodput_per_h" from Source::Step(|r| over_calls(r, r.goodput_per_h)) => {
        PerHour, Higher;
        name: "Goodput", "有效吞吐";
        is: "calls an hour that met every limit of `[slo]`", "每小时满足 `[slo]` 全部上限的通数";
        glossary: Some(Glossary::from("calls.jsonl").says(
            "Counted calls per hour that met every limit.",
            "每小时满足全部上限的计入通数。",
        ));
    }
    LittleCalls "little_calls" from Source::Step(|r| over_calls(r, r.little_calls)) => {
        Count, Neither;
        name: "Little's law", "Little 定律";
        is: "calls in the system by Little's law", "按 Little 定律算得的系统内通数";
        glossary: Some(Glossary::from("calls.jsonl").says(
            "Arrivals per second x mean seconds in the system; about N in a closed loop.",
            "每秒到达数 x 平均停留秒数；闭环下约等于 N。",
        ));
    }
    DrainS "drain_s" from Source::Step(|r| known(r.drain_s, 1)) => {
        Seconds, Lower;
        name: "Drain", "排空";
        is: "from the last close until every instance was empty", "从最后一次关闭到每个实例都空";
        glossary: Some(Glossary::from("events.jsonl").says(
            "Seconds from the last close until every instance had nothing running, waiting or open in two clean scrapes.",
            "从最后一次关闭到每个实例连续两次干净采样都无运行、无等待、无会话，秒。",
        ));
    }
    ServerRtf "server_rtf" from Source::Step(|r| known(r.server_rtf, scrapes(r))) => {
        Ratio, Lower;
        name: "Server RTF", "服务端 RTF";
        is: "processing time that the engines counted / audio played", "引擎自报处理时间 / 播放的音频";
        glossary: Some(Glossary::from("series.jsonl").says(
            "Processing time that the engines counted / audio played; never held against a limit.",
            "引擎自报处理时间 / 播放的音频；不参与判定。",
        ));
    }
    ClientWakeLateP99Ms "client_wake_late_p99_ms" from Source::Step(|r| over_calls(r, r.wake_late_p99_ms)) => {
        Milliseconds, Lower;
        name: "Wake lateness", "唤醒延迟";
        is: "our own lateness at p99 over all chunks of the step", "压测端对本步全部块的迟到，p99";
        column: Some("wake_late_p99_ms");
        glossary: Some(Glossary::from("hdr/, trace/").says(
            "How late our own sender woke for a chunk, p99 over all chunks, milliseconds; empty in a rehearsal.",
            "压测端为一块音频醒来迟到多久，全部块的 p99，毫秒；演练中为空。",
        ));
    }
    ClientDriftPpm "client_drift_ppm" from Source::Step(|r| over_calls(r, r.client_drift_ppm)) => {
        PartsPerMillion, Lower;
        name: "Drift of our clock", "压测端漂移";
        is: "how much later we woke the longer a call lasted, median over calls",
            "通话越久压测端醒得越迟的程度，各通中位数";
    }
    ClientCpuShare "client_cpu_share" from Source::Step(|r| known(r.client_cpu_share, 1)) => {
        Share, Lower;
        name: "CPU of the load generator", "压测端 CPU";
        is: "CPU that the load generator used / this machine's cores, 0..1", "压测端占用的 CPU / 本机核数，0..1";
    }
    GpuUtilAvg "gpu_util_avg" from Source::Step(|r| gpu(r, |g| g.utilisation_avg)) => {
        Share, Neither;
        name: "GPU utilisation", "GPU 利用率";
        is: "mean utilisation of the GPUs, 0..1", "各 GPU 的平均利用率，0..1";
        glossary: Some(Glossary::from("series.jsonl").key("gpu_util").says(
            "Mean share of time during which the GPU had work, over the window.",
            "窗口内 GPU 有活干的时间占比均值。",
        ));
    }
    GpuUtilMax "gpu_util_max" from Source::Step(|r| gpu(r, |g| g.utilisation_max)) => {
        Share, Neither;
        name: "Highest GPU utilisation", "GPU 最高利用率";
        is: "highest utilisation of any GPU, 0..1", "任一 GPU 的最高利用率，0..1";
    }
    GpuTemperatureMaxC "gpu_temperature_max_c" from Source::Step(|r| gpu(r, |g| g.temperature_max_c)) => {
        Celsius, Lower;
        name: "GPU temperature", "GPU 温度";
        is: "highest temperature of any GPU", "任一 GPU 的最高温度";
    }
    GpuPowerAvgW "gpu_power_avg_w" from Source::Step(|r| gpu(r, |g| g.power_avg_w)) => {
        Watts, Neither;
        name: "GPU power", "GPU 功率";
        is: "mean power of all GPUs together", "全部 GPU 的平均功率之和";
    }
    VramUsedGb "vram_used_gb" from Source::Step(|r| gpu(r, |g| g.vram_used_bytes.map(gigabytes))) => {
        Gigabytes, Lower;
        name: "GPU memory (VRAM)", "显存 VRAM";
        is: "highest memory use of all GPUs together", "全部 GPU 显存占用之和的最高值";
        // Tables have it in bytes.
        column: None;
        curve: Some("vram");
        glossary: Some(
            Glossary::from("series.jsonl").key("vram_used_bytes").named("VRAM", "显存").says(
                "GPU memory in use at its highest during the window, each GPU once, 10^9 bytes.",
                "窗口内显存占用的最高值，每张卡计一次，10^9 字节。",
            ),
        );
    }
    KvPoolP95 "kv_pool_p95" from Source::Page(|r| r.kv_pool_p95, |i| i.kv_pool_p95) => {
        Share, Lower;
        name: "KV pool p95, worst instance", "KV 池占用 p95（最差实例）";
        is: "fill of the KV pool at p95, 0..1; of the worst instance", "KV 池占用的 p95，0..1；取最差实例";
        floor: 0.02;
        compared: true;
        curve: Some("kv");
        glossary: Some(
            Glossary::from("series.jsonl").named("KV pool p95", "KV 池 p95").says(
                "95th percentile of the share of the KV pool in use, from ramp to end of drain, worst instance.",
                "从爬坡到排空结束，KV 池占用率的 95 分位，取最差实例。",
            ),
        );
    }
    KvPoolMax "kv_pool_max" from Source::Page(|r| worst(r, |i| i.kv_pool_max), |i| i.kv_pool_max) => {
        Share, Lower;
        name: "Highest fill of the KV pool", "KV 池最高占用";
        is: "highest fill of the KV pool, 0..1; of the worst instance", "KV 池的最高占用，0..1；取最差实例";
    }
    Preemptions "preemptions" from Source::Page(|r| r.preempt_delta, |i| i.preempt_delta) => {
        Count, Lower;
        name: "Preempted", "抢占";
        is: "requests thrown out of the KV pool, over all instances", "被挤出 KV 池的请求数，全部实例之和";
        column: Some("preempt_delta");
        glossary: Some(Glossary::from("series.jsonl").says(
            "Requests thrown out of the KV pool during the tier, over all instances.",
            "本档内被挤出 KV 池的请求数，全部实例之和。",
        ));
    }
    PrefixHitRate "prefix_hit_rate" from Source::Page(|r| r.prefix_hit_rate, |i| i.prefix_hit_rate) => {
        Share, Neither;
        name: "Prefix-cache hits", "前缀缓存命中率";
        is: "prefix-cache hits / look-ups, 0..1; of the worst instance", "前缀缓存命中 / 查询，0..1；取最差实例";
    }
    MmHitRate "mm_hit_rate" from Source::Page(|r| r.mm_hit_rate, |i| i.mm_hit_rate) => {
        Share, Neither;
        name: "Multimodal-cache hits", "多模态缓存命中率";
        is: "multimodal-cache hits / look-ups, 0..1; of the worst instance", "多模态缓存命中 / 查询，0..1；取最差实例";
    }
    ErrStreams "err_streams" from Source::Step(|r| known(Some(r.err_streams.into()), r.streams.into())) => {
        Count, Lower;
        name: "Errored streams", "出错路数";
        is: "streams with at least one errored call", "至少有一通出错的路数";
        compared: true;
        glossary: Some(Glossary::from("calls.jsonl").says(
            "Streams with at least one counted call that ended in an error.",
            "至少有一通计入通话以错误结束的路数。",
        ));
    }
}

impl StepFigure {
    /// Its value in a judged step, with how much stands behind it, and an interval where it has one; empty where it is
    /// unknown, or one of a set of calls that a report does not keep.
    #[must_use]
    pub fn estimate(self, report: &TierReport) -> Option<Estimate> {
        match self.source() {
            Source::Calls(_) => None,
            Source::Words(_, of) => of(report.quality.as_ref()?),
            Source::Step(of) => of(report),
            Source::Page(of, _) => known(of(report), scrapes(report)),
        }
    }

    /// Whether it comes with an interval.
    #[must_use]
    pub const fn has_interval(self) -> bool {
        matches!(self.source(), Source::Words(..))
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of calls are far below 2^53")]
const fn count(n: usize) -> f64 {
    n as f64
}

fn errors(all: &[&CallRecord]) -> usize {
    all.iter().filter(|c| c.class == OutcomeClass::Error).count()
}

fn clean(all: &[&CallRecord]) -> usize {
    all.iter().filter(|c| c.class == OutcomeClass::Ok).count()
}

fn share(part: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| count(part) / count(of))
}

/// Errors / tokens of the references, over the calls that have one.
pub(crate) fn pooled(all: &[&CallRecord], words: fn(&CallRecord) -> Option<WordCounts>) -> Option<f64> {
    let counts = all.iter().filter_map(|c| words(c));
    let (wrong, of) = counts
        .fold((0_u64, 0_u64), |(wrong, of), w| (wrong + u64::from(w.errors()), of + u64::from(w.ref_tokens)));
    #[expect(clippy::cast_precision_loss, reason = "numbers of words are far below 2^53")]
    let rate = wrong as f64 / of as f64;
    (of > 0).then_some(rate)
}

fn worst(report: &TierReport, of: fn(&InstanceReport) -> Option<f64>) -> Option<f64> {
    report.instances.values().filter_map(of).reduce(f64::max)
}

/// A value without an interval, and how much stands behind it.
fn known(value: Option<f64>, n: u64) -> Option<Estimate> {
    value.map(|value| Estimate { value, n, low: None, high: None })
}

fn over_calls(report: &TierReport, value: Option<f64>) -> Option<Estimate> {
    known(value, report.calls_counted)
}

pub(crate) fn scrapes(report: &TierReport) -> u64 {
    report.instances.values().map(|i| i.scrapes).sum()
}

fn gpu(report: &TierReport, of: fn(&GpuReport) -> Option<f64>) -> Option<Estimate> {
    let gpus = report.gpu.as_ref()?;
    known(of(gpus), gpus.gpus.into())
}

#[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
const fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}
