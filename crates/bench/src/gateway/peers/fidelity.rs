//! Comparison of a program's output with what its server sent.

use std::time::{Duration, Instant};

use consort_protocol::{Era, Object};
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use super::super::field::PREFIX;
use super::super::progress::{STEPS, heard};
use super::entrant::Running;
use super::lane::Lane;
use super::options::Options;
use crate::Failure;
use crate::load::{Ask, Client};
use crate::server::{EXACT_CONTENT, EXACT_META, EXACT_STRUCTURE};

/// Time limit of one answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Fidelity of a result.
#[derive(Debug, Serialize)]
pub(super) struct Fidelity {
    pub(super) client: Era,
    pub(super) lane: Lane,
    pub(super) content: Kept,
    pub(super) structured_content: Kept,
    pub(super) meta: Kept,
    /// Steps of progress that arrived in order, of three.
    pub(super) steps: usize,
}

/// Degree to which a value is preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kept {
    Lost,
    Changed,
    /// Other bytes with the same meaning.
    Same,
    /// The bytes of the server.
    Bytes,
}

/// Requests the exact result once, and progress for one turn.
pub(super) async fn measure(
    running: &Running,
    era: Era,
    options: &Options,
) -> Result<(Fidelity, Vec<f64>), Failure> {
    let limit = PATIENCE + options.time();
    timeout(limit, unlimited(running, era, options)).await.map_err(|_| "no answer")?
}

async fn unlimited(
    running: &Running,
    era: Era,
    options: &Options,
) -> Result<(Fidelity, Vec<f64>), Failure> {
    let prefix = format!("{}{PREFIX}", running.entrant.prefix());
    let mut client = Client::connect(&running.place().url, era).await?;
    let tool = format!("{prefix}exact");
    let params = format!(r#""name":"{tool}","arguments":{{}}"#);
    let ask = Ask { name: Some(&tool), ..Ask::new("tools/call", &params) };
    let result = client.ask(ask, |_| {}).await?;
    // The first call opens connections and is not counted.
    let (steps, _) = heard(&mut client, &prefix).await?;
    let steps = in_order(&steps);
    let mut delays = Vec::new();
    let until = Instant::now() + options.time();
    let calls = usize::try_from(options.calls)?;
    while steps == STEPS && Instant::now() < until && delays.len() < calls {
        delays.extend(heard(&mut client, &prefix).await?.1.first());
    }
    client.close().await?;
    let fidelity = Fidelity {
        client: era,
        lane: running.entrant.lane(),
        content: kept(&result, "content", EXACT_CONTENT)?,
        structured_content: kept(&result, "structuredContent", EXACT_STRUCTURE)?,
        meta: kept_members(&result, EXACT_META)?,
        steps,
    };
    Ok((fidelity, delays))
}

/// Returns the number of steps up to the first that is out of order.
fn in_order(steps: &[Option<f64>]) -> usize {
    let expected = (1..).map(|n| Some(f64::from(n)));
    steps.iter().zip(expected).take_while(|(step, expected)| *step == expected).count()
}

fn kept(result: &Object, name: &str, written: &str) -> Result<Kept, Failure> {
    let Some(got) = result.get_bytes(name) else { return Ok(Kept::Lost) };
    if got == written.as_bytes() {
        return Ok(Kept::Bytes);
    }
    let got: Value = serde_json::from_slice(got)?;
    let same = same(&got, &serde_json::from_str(written)?);
    Ok(if same { Kept::Same } else { Kept::Changed })
}

/// Compares `_meta`: programs may add members; the original ones must stay.
fn kept_members(result: &Object, written: &str) -> Result<Kept, Failure> {
    let kept = kept(result, "_meta", written)?;
    let Some(got) = result.get_bytes("_meta").filter(|_| kept == Kept::Changed) else {
        return Ok(kept);
    };
    let (got, written): (Value, Value) =
        (serde_json::from_slice(got)?, serde_json::from_str(written)?);
    let mut members = written.as_object().into_iter().flatten();
    let all = members.all(|(name, value)| got.get(name).is_some_and(|got| same(got, value)));
    Ok(if all { Kept::Same } else { Kept::Lost })
}

/// Returns true if two values mean the same: `1.0` is `1`, but an integer must be exact.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|it| same(one, it)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_protocol::Json;

    fn result(text: &str) -> Object {
        Json::parse(text.to_owned()).unwrap().to_object().unwrap()
    }

    #[test]
    fn bytes_are_told_apart_from_values_and_values_from_losses() {
        let of =
            |text: &str| kept(&result(text), "a", r#"{"x":1.0,"y":9007199254740993}"#).unwrap();
        assert_eq!(of(r#"{"a":{"x":1.0,"y":9007199254740993}}"#), Kept::Bytes);
        assert_eq!(of(r#"{"a":{"y":9007199254740993,"x":1}}"#), Kept::Same);
        assert_eq!(of(r#"{"a":{"x":1.0,"y":9007199254740992}}"#), Kept::Changed);
        assert_eq!(of(r#"{"a":{"x":1.0}}"#), Kept::Changed);
        assert_eq!(of(r#"{"b":1}"#), Kept::Lost);
    }

    #[test]
    fn what_is_added_to_meta_is_no_loss() {
        let of = |text: &str| kept_members(&result(text), r#"{"t":"1"}"#).unwrap();
        assert_eq!(of(r#"{"_meta":{"t":"1"}}"#), Kept::Bytes);
        assert_eq!(of(r#"{"_meta":{"s":2,"t":"1"}}"#), Kept::Same);
        assert_eq!(of(r#"{"_meta":{"s":2}}"#), Kept::Lost);
        assert_eq!(of("{}"), Kept::Lost);
    }

    #[test]
    fn steps_count_up_to_the_first_that_is_missing() {
        assert_eq!(in_order(&[Some(1.0), Some(2.0), Some(3.0)]), 3);
        assert_eq!(in_order(&[Some(1.0), Some(3.0)]), 1);
        assert_eq!(in_order(&[]), 0);
    }
}
