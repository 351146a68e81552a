//! What is known of a figure besides its value: unit, names, definition, and where it is shown.

use tapedeck_l10n::{LocalizedText, StaticText};

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Milliseconds per minute.
    MillisecondsPerMinute,
    /// One quantity over another, of the same unit.
    Ratio,
    /// A part of a whole, 0..1.
    Share,
    /// A number of things.
    Count,
    /// Events an hour.
    PerHour,
    /// Parts per million.
    PartsPerMillion,
    /// Degrees Celsius.
    Celsius,
    /// Watts.
    Watts,
    /// 10^9 bytes.
    Gigabytes,
}

impl Unit {
    /// As it stands behind a number; empty for ratios, shares and counts.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::MillisecondsPerMinute => "ms/min",
            Self::Ratio | Self::Share | Self::Count => "",
            Self::PerHour => "1/h",
            Self::PartsPerMillion => "ppm",
            Self::Celsius => "C",
            Self::Watts => "W",
            Self::Gigabytes => "10^9 bytes",
        }
    }

    /// As it stands beside the axis of a plot.
    #[must_use]
    pub const fn axis(self) -> StaticText {
        match self {
            Self::Seconds => StaticText::new("seconds", "秒"),
            Self::Milliseconds => StaticText::new("milliseconds", "毫秒"),
            Self::MillisecondsPerMinute => StaticText::new("milliseconds per minute", "毫秒/分钟"),
            Self::Ratio => StaticText::new("ratio", "比值"),
            Self::Share => StaticText::new("share, 0 to 1", "占比，0 到 1"),
            Self::Count => StaticText::new("number", "数量"),
            Self::PerHour => StaticText::new("per hour", "每小时"),
            Self::PartsPerMillion => StaticText::new("parts per million", "百万分之一"),
            Self::Celsius => StaticText::new("degrees Celsius", "摄氏度"),
            Self::Watts => StaticText::new("watts", "瓦"),
            Self::Gigabytes => StaticText::new("GB (10^9 bytes)", "GB（10^9 字节）"),
        }
    }

    /// As it stands behind the name of a figure, with its comma: `, s`; empty where there is no symbol.
    #[must_use]
    pub fn behind_name(self) -> LocalizedText {
        let symbol = self.symbol();
        match self {
            _ if symbol.is_empty() => LocalizedText::default(),
            Self::Seconds | Self::Milliseconds => {
                LocalizedText { en: format!(", {symbol}"), zh: format!("，{}", self.axis().zh) }
            }
            _ => LocalizedText { en: format!(", {symbol}"), zh: format!("，{symbol}") },
        }
    }
}

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Neither: it describes.
    Neither,
}

/// What the glossary of a report says of a figure, where that is more than its name and definition.
#[derive(Debug, Clone, Copy)]
pub struct Glossary {
    /// Its name in files, where that is not its column or id.
    pub key: Option<&'static str>,
    /// The name there.
    pub name: Option<StaticText>,
    /// A whole sentence, with the unit.
    pub definition: Option<StaticText>,
    /// The file of the run directory that the figure is read from.
    pub source: &'static str,
}

impl Glossary {
    /// By its own name and definition.
    #[must_use]
    pub const fn from(source: &'static str) -> Self {
        Self { key: None, name: None, definition: None, source }
    }

    /// By another name in files.
    #[must_use]
    pub const fn key(self, key: &'static str) -> Self {
        Self { key: Some(key), ..self }
    }

    /// With a sentence of its own.
    #[must_use]
    pub const fn says(self, en: &'static str, zh: &'static str) -> Self {
        Self { definition: Some(StaticText::new(en, zh)), ..self }
    }

    /// Under another name.
    #[must_use]
    pub const fn named(self, en: &'static str, zh: &'static str) -> Self {
        Self { name: Some(StaticText::new(en, zh)), ..self }
    }
}

/// How a figure of single calls is summarised over the counted calls of a step: p50 and p95 with their intervals, the
/// largest, the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summarised {
    /// Bootstrap stream of p50; p95 draws from the next one. Fixed by figure, so that a new figure changes no interval
    /// of another.
    pub stream: u64,
    /// Whether calls without a word count among the failures.
    pub wordless: bool,
    /// How its columns in `tiers.csv` begin, where that is not the figure's id.
    pub column: Option<&'static str>,
}

impl Summarised {
    /// With its bootstrap stream.
    #[must_use]
    pub const fn drawn(stream: u64) -> Self {
        Self { stream, wordless: false, column: None }
    }

    /// Calls without a word count among the failures: they have no text, ever.
    #[must_use]
    pub const fn wordless_fail(self) -> Self {
        Self { wordless: true, ..self }
    }

    /// Under another name in `tiers.csv`.
    #[must_use]
    pub const fn column(self, column: &'static str) -> Self {
        Self { column: Some(column), ..self }
    }
}

/// One entry of a catalogue of figures: everything but how the figure is computed.
#[derive(Debug, Clone, Copy)]
pub struct FigureSpec {
    /// Its name in files and limits.
    pub id: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its name for people, without the unit.
    pub name: StaticText,
    /// What it is, in one line.
    pub definition: StaticText,
    /// Which way it is better.
    pub better: Better,
    /// Difference below which two steps are alike, whatever its share; 0 where any difference counts.
    pub floor: f64,
    /// Whether two runs are compared by it: by its p95 where it is one of single calls.
    pub compared: bool,
    /// Name of its plot over concurrency, where it has one.
    pub curve: Option<&'static str>,
    /// What the glossary of a report says of it; empty where a report does not show it.
    pub glossary: Option<Glossary>,
    /// How it is summarised over the calls of a step, where it is one of single calls.
    pub summarised: Option<Summarised>,
    /// Column of a figure of a step in `tiers.csv`; empty where it is not one of them.
    pub column: Option<&'static str>,
}

impl FigureSpec {
    /// An entry that has no more than it must have.
    #[must_use]
    pub const fn new(
        id: &'static str,
        unit: Unit,
        better: Better,
        name: StaticText,
        definition: StaticText,
    ) -> Self {
        Self {
            id,
            unit,
            name,
            definition,
            better,
            floor: 0.0,
            compared: false,
            curve: None,
            glossary: None,
            summarised: None,
            column: Some(id),
        }
    }

    /// What the glossary says of it: key in files, name, definition, source.
    #[must_use]
    pub fn explained(&self) -> Option<(&'static str, LocalizedText, LocalizedText, &'static str)> {
        let said = self.glossary?;
        let key = said.key.or(self.column).unwrap_or(self.id);
        let name = said.name.unwrap_or(self.name).into();
        Some((key, name, said.definition.unwrap_or(self.definition).into(), said.source))
    }

    /// The name with the unit behind it, as beside an axis: `Final, s`.
    #[must_use]
    pub fn label(&self) -> LocalizedText {
        let unit = self.unit.behind_name();
        LocalizedText {
            en: format!("{}{}", self.name.en, unit.en),
            zh: format!("{}{}", self.name.zh, unit.zh),
        }
    }
}

/// One entry of a catalogue, as it is written there: unit and direction, name and definition in both languages (English
/// first), then whatever else the figure has.
#[doc(hidden)]
#[macro_export]
macro_rules! figure_spec {
    (
        $id:expr; $unit:ident, $better:ident;
        name: $name_en:literal, $name_zh:literal;
        is: $is_en:literal, $is_zh:literal;
        $($key:ident: $value:expr;)*
    ) => {
        $crate::FigureSpec {
            $($key: $value,)*
            ..$crate::FigureSpec::new(
                $id,
                $crate::Unit::$unit,
                $crate::Better::$better,
                $crate::StaticText::new($name_en, $name_zh),
                $crate::StaticText::new($is_en, $is_zh),
            )
        }
    };
}

/// Defines the record of a call and, from the fields that are figures, the catalogue of figures of single calls.
macro_rules! call_record {
    (
        $(#[$on_record:meta])*
        pub struct $Record:ident {
            $(
                $(#[$on_field:meta])*
                pub $field:ident: $type:ty $(= $Figure:ident { $($entry:tt)* })?,
            )*
        }
    ) => {
        $(#[$on_record])*
        pub struct $Record {
            $($(#[$on_field])* pub $field: $type,)*
        }

        /// A figure of single calls: one field of the record of a call, with everything that is known of it besides
        /// its value. In files it goes by its id.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum CallFigure {
            $($(
                #[doc = concat!("`", stringify!($field), "`.")]
                $Figure,
            )?)*
        }

        impl CallFigure {
            /// Every figure of single calls, in the order of the record.
            pub const ALL: &'static [Self] = &[$($(Self::$Figure,)?)*];

            /// What is known of it besides its value.
            #[must_use]
            pub const fn spec(self) -> &'static FigureSpec {
                match self {
                    $($(
                        Self::$Figure => {
                            const SPEC: &FigureSpec = &$crate::figure_spec!(stringify!($field); $($entry)*);
                            SPEC
                        }
                    )?)*
                }
            }

            /// Its value in one call; empty where it is unknown or does not apply.
            #[must_use]
            pub fn get(self, call: &$Record) -> Option<f64> {
                match self {
                    $($(Self::$Figure => $crate::figure::Known::known(call.$field),)?)*
                }
            }
        }
    };
}
pub(crate) use call_record;

/// A field that holds a figure.
pub(crate) trait Known {
    fn known(self) -> Option<f64>;
}

impl Known for Option<f64> {
    fn known(self) -> Option<f64> {
        self
    }
}

impl Known for u32 {
    fn known(self) -> Option<f64> {
        Some(self.into())
    }
}
