//! One line of `series.jsonl`, read without keeping more of it than a report needs.
//!
//! There are millions of them: scalars go into places instead of a map, and of a histogram only its last count and its
//! sum are kept.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use tapedeck_record::Metric;

/// How many scalars a line may carry.
pub(crate) const SCALARS: usize = Metric::ALL.len() + REST.len();

const REST: [&str; 7] = [
    "gpu_utilisation",
    "gpu_memory_used_bytes",
    "gpu_power_w",
    "gpu_temperature_c",
    "gpu_sm_clock_mhz",
    "client_cpu_share",
    "client_rss_bytes",
];

/// The names of all scalars, in the order of their places.
pub(crate) fn scalar_names() -> impl Iterator<Item = &'static str> {
    Metric::ALL.into_iter().map(Metric::name).chain(REST)
}

/// The place of a scalar.
pub(crate) fn place_of(scalar: &str) -> Option<usize> {
    scalar_names().position(|name| name == scalar)
}

/// One line of `series.jsonl`, borrowed from it: all kinds of samples in one flat shape.
#[derive(Debug, Deserialize)]
pub struct Line<'a> {
    /// Step it was taken in.
    #[serde(borrow)]
    pub step: Cow<'a, str>,
    /// Seconds from the run's origin.
    pub at_s: f64,
    /// Instance, GPU uuid or `client`.
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    /// `engine`, `gpu`, `client` or `gap`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// What an engine's page said.
    #[serde(default)]
    values: Values,
    /// Its histograms.
    #[serde(borrow, default)]
    pub histograms: Ends<'a>,
    #[serde(default)]
    utilisation: Option<f64>,
    #[serde(default)]
    memory_used_bytes: Option<f64>,
    #[serde(default)]
    power_w: Option<f64>,
    #[serde(default)]
    temperature_c: Option<f64>,
    #[serde(default)]
    sm_clock_mhz: Option<f64>,
    #[serde(default)]
    cpu_share: Option<f64>,
    #[serde(default)]
    rss_bytes: Option<f64>,
}

impl Line<'_> {
    /// Every scalar in its place; empty where the line does not carry it.
    #[must_use]
    pub(crate) fn scalars(&self) -> [Option<f64>; SCALARS] {
        let rest = [
            self.utilisation,
            self.memory_used_bytes,
            self.power_w,
            self.temperature_c,
            self.sm_clock_mhz,
            self.cpu_share,
            self.rss_bytes,
        ];
        let mut all = [None; SCALARS];
        for (place, value) in all.iter_mut().zip(self.values.0.iter().chain(&rest)) {
            *place = *value;
        }
        all
    }
}

#[derive(Debug, Default)]
struct Values([Option<f64>; Metric::ALL.len()]);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Values;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("figures by name")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut values = Values::default();
                while let Some(place) = map.next_key_seed(Place)? {
                    match place.and_then(|place| values.0.get_mut(place)) {
                        Some(value) => *value = map.next_value()?,
                        // A figure of another version.
                        None => {
                            let _: IgnoredAny = map.next_value()?;
                        }
                    }
                }
                Ok(values)
            }
        }
        from.deserialize_map(Map)
    }
}

/// Reads a metric's name as its place.
struct Place;

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Option<usize>;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<usize>, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Place {
    type Value = Option<usize>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a figure")
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<Option<usize>, E> {
        let metric = Metric::deserialize(StrDeserializer::<E>::new(name)).ok();
        Ok(metric.and_then(|metric| Metric::ALL.iter().position(|m| *m == metric)))
    }
}

/// How far a cumulative histogram had come.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Observations so far.
    pub count: f64,
    /// Their sum, where the engine's sums can be used.
    pub sum: Option<f64>,
}

/// The histograms of a line by name.
#[derive(Debug, Default)]
pub struct Ends<'a>(pub Vec<(Cow<'a, str>, End)>);

impl<'de: 'a, 'a> Deserialize<'de> for Ends<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
        #[derive(Deserialize)]
        struct Whole {
            counts: Last,
            #[serde(default)]
            sum: Option<f64>,
        }
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Ends<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("histograms by name")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ends<'de>, A::Error> {
                let mut all = Vec::new();
                while let Some((Name(name), Whole { counts: Last(count), sum })) = map.next_entry()? {
                    all.extend(count.map(|count| (name, End { count, sum })));
                }
                Ok(Ends(all))
            }
        }
        from.deserialize_map(Map)
    }
}

/// The last number of a list.
struct Last(Option<f64>);

impl<'de> Deserialize<'de> for Last {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Last;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counts")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Last, A::Error> {
                let mut last = None;
                while let Some(count) = list.next_element()? {
                    last = Some(count);
                }
                Ok(Last(last))
            }
        }
        from.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_with_what_is_not_known_left_out() {
        let text = r#"{"step":"N003","at_s":2.5,"source":"a\"b","kind":"engine","values":{"kv_pool":0.25,"of_tomorrow":[1],"running":null,"finished":7},"histograms":{"ttft":{"bounds":[1],"counts":[3,9],"sum":4.5},"none":{"bounds":[],"counts":[]}}}"#;
        let line: Line<'_> = serde_json::from_str(text).unwrap();
        let scalar = |name: &str| line.scalars()[place_of(name).unwrap()];
        assert_eq!((scalar("kv_pool"), scalar("running"), scalar("finished")), (Some(0.25), None, Some(7.0)));
        assert_eq!(line.source, "a\"b");
        assert_eq!(line.histograms.0.len(), 1);
        assert_eq!((line.histograms.0[0].1.count, line.histograms.0[0].1.sum), (9.0, Some(4.5)));
    }

    #[test]
    fn a_gpu_stands_behind_the_engines_figures() {
        let text = r#"{"step":"s","at_s":1,"source":"GPU-1","kind":"gpu","utilisation":0.5,"memory_used_bytes":1000,"throttle":["heat"]}"#;
        let line: Line<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(line.scalars()[place_of("gpu_utilisation").unwrap()], Some(0.5));
        assert_eq!(line.scalars().iter().flatten().count(), 2);
    }
}
