//! What one token of context costs, from the shape of the model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tapedeck_l10n::StaticText;

use crate::error::SizingError;

/// The format in which keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 4 bytes.
    Float32,
    /// 2 bytes.
    Float16,
    /// 2 bytes.
    Bfloat16,
    /// 1 byte.
    Fp8,
    /// 1 byte.
    Int8,
}

impl Dtype {
    /// Bytes of one number.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Float32 => 4,
            Self::Float16 | Self::Bfloat16 => 2,
            Self::Fp8 | Self::Int8 => 1,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float16 => "float16",
            Self::Bfloat16 => "bfloat16",
            Self::Fp8 => "fp8",
            Self::Int8 => "int8",
        }
    }
}

impl std::str::FromStr for Dtype {
    type Err = SizingError;

    fn from_str(word: &str) -> Result<Self, SizingError> {
        match word.trim_start_matches("torch.").to_ascii_lowercase().as_str() {
            "float32" | "fp32" | "float" => Ok(Self::Float32),
            "float16" | "fp16" | "half" => Ok(Self::Float16),
            "bfloat16" | "bf16" => Ok(Self::Bfloat16),
            "fp8" | "fp8_e4m3" | "fp8_e5m2" | "float8_e4m3fn" | "float8_e5m2" => Ok(Self::Fp8),
            "int8" => Ok(Self::Int8),
            _ => Err(SizingError::Unknown {
                what: StaticText::new("number format", "数值格式"),
                given: word.to_owned(),
                known: "float32, float16, bfloat16, fp8, int8".into(),
            }),
        }
    }
}

/// The part of a decoder that decides what a token of context costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Layers of the text stack.
    pub layers: u32,
    /// Heads that keep keys and values, in each layer.
    pub kv_heads: u32,
    /// Numbers in one key or value.
    pub head_dim: u32,
    /// Their format.
    pub dtype: Dtype,
}

/// No model comes near; keeps products far from overflow.
const MOST: u32 = 100_000;

impl Architecture {
    /// The text stack of Qwen3-ASR-0.6B: 28 layers, 8 KV heads of 128, bfloat16.
    #[must_use]
    pub const fn qwen3_asr_0_6b() -> Self {
        Self { layers: 28, kv_heads: 8, head_dim: 128, dtype: Dtype::Bfloat16 }
    }

    /// Checks that every count is between 1 and 100,000.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), SizingError> {
        for (what, given) in
            [("layers", self.layers), ("KV heads", self.kv_heads), ("head size", self.head_dim)]
        {
            crate::error::positive(what, f64::from(given), f64::from(MOST))?;
        }
        Ok(())
    }

    /// Bytes of one token: a key and a value in every KV head of every layer.
    ///
    /// # Errors
    /// As [`Architecture::check`].
    pub fn kv_bytes_per_token(&self) -> Result<u64, SizingError> {
        self.check()?;
        Ok(2 * u64::from(self.layers)
            * u64::from(self.kv_heads)
            * u64::from(self.head_dim)
            * self.dtype.bytes())
    }

    /// The architecture that a model's `config.json` describes. Multimodal models keep their text stack in a table of its
    /// own (`thinker_config.text_config`, `text_config`, `llm_config`, `language_config`); the first that is there
    /// is read, else the top level. The head size is `head_dim`, else `hidden_size / num_attention_heads`; the format
    /// is `dtype` or `torch_dtype`, of the table or of those around it, unless `dtype` is given (engines can
    /// keep the pool in another format than the weights).
    ///
    /// # Errors
    /// A text that is no JSON object, every missing key at once, or a key with an impossible value.
    pub fn from_config_json(text: &str, dtype: Option<Dtype>) -> Result<Self, SizingError> {
        let root: Value = serde_json::from_str(text).map_err(|e| SizingError::Json(e.to_string()))?;
        let Value::Object(root) = root else {
            return Err(SizingError::Json("it is not a JSON object".into()));
        };
        let (place, tables) = text_stack(&root);
        let find = |key: &str| tables.first().and_then(|table| table.get(key)).filter(|v| !v.is_null());
        let anywhere = |key: &str| tables.iter().find_map(|table| table.get(key)).filter(|v| !v.is_null());
        let mut missing = Vec::new();
        let mut whole = |key: &str| match find(key) {
            Some(value) => whole_number(key, value),
            None => {
                missing.push(format!("`{key}`"));
                Ok(1)
            }
        };
        let layers = whole("num_hidden_layers")?;
        let kv_heads = whole("num_key_value_heads")?;
        let head_dim = match (find("head_dim"), find("hidden_size"), find("num_attention_heads")) {
            (Some(value), ..) => whole_number("head_dim", value)?,
            (None, Some(hidden), Some(heads)) => {
                let (hidden, heads) =
                    (whole_number("hidden_size", hidden)?, whole_number("num_attention_heads", heads)?);
                if hidden % heads != 0 {
                    return Err(SizingError::BadKey {
                        key: "hidden_size".into(),
                        value: hidden.to_string(),
                        rule: StaticText::new(
                            "must be a multiple of num_attention_heads where there is no head_dim",
                            "没有 head_dim 时须为 num_attention_heads 的倍数",
                        ),
                    });
                }
                hidden / heads
            }
            _ => {
                missing.push("`head_dim` (or both `hidden_size` and `num_attention_heads`)".into());
                1
            }
        };
        let dtype = match (dtype, anywhere("dtype").or_else(|| anywhere("torch_dtype"))) {
            (Some(dtype), _) => dtype,
            (None, Some(Value::String(word))) => word.parse()?,
            (None, Some(other)) => {
                let rule =
                    StaticText::new("must be a text such as \"bfloat16\"", "须为文本，例如 \"bfloat16\"");
                return Err(SizingError::BadKey { key: "dtype".into(), value: other.to_string(), rule });
            }
            (None, None) => {
                missing.push("`dtype` (or `torch_dtype`)".into());
                Dtype::Bfloat16
            }
        };
        if !missing.is_empty() {
            return Err(SizingError::MissingKeys { keys: missing, place });
        }
        let architecture = Self { layers, kv_heads, head_dim, dtype };
        architecture.check()?;
        Ok(architecture)
    }
}

/// The table of the text stack first, then those around it; and the name of the first.
fn text_stack(root: &Map<String, Value>) -> (String, Vec<&Map<String, Value>>) {
    let inside = |table: &'_ Value, key: &str| table.get(key).is_some_and(Value::is_object);
    let thinker = root.get("thinker_config").filter(|value| inside(value, "text_config"));
    if let Some(Value::Object(thinker)) = thinker
        && let Some(Value::Object(text)) = thinker.get("text_config")
    {
        return ("thinker_config.text_config".into(), vec![text, thinker, root]);
    }
    for key in ["text_config", "llm_config", "language_config"] {
        if let Some(Value::Object(text)) = root.get(key) {
            return (key.into(), vec![text, root]);
        }
    }
    ("the top level".into(), vec![root])
}

fn whole_number(key: &str, value: &Value) -> Result<u32, SizingError> {
    value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=MOST * 10).contains(n)).ok_or_else(
        || SizingError::BadKey {
            key: key.into(),
            value: value.to_string(),
            rule: StaticText::new("must be a whole number from 1 to 1000000", "须为 1 到 1000000 的整数"),
        },
    )
}
