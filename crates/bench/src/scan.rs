//! Cost of parsing a message and forwarding it under another id, in three ways.

use bytes::Bytes;
use consort_protocol::{JsonRpcMessage, RequestId, splice};
use rmcp::model::{NumberOrString, ServerJsonRpcMessage};
use serde::Serialize;
use serde_json::Value;

use crate::Failure;
use crate::samples::{self, Sample};
use crate::statistics::{Subject, in_turns, median, ratio};

/// The id the message is passed on under.
const ID: u32 = 7;

/// One message, passed on in each way.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) message: &'static str,
    pub(crate) bytes: usize,
    pub(crate) ways: Vec<Way>,
}

/// One way to pass a message on.
#[derive(Debug, Serialize)]
pub(crate) struct Way {
    pub(crate) by: &'static str,
    pub(crate) nanoseconds: f64,
    pub(crate) megabytes_per_second: f64,
    /// Ratio of its time to Consort's.
    pub(crate) times_ours: f64,
}

type Pass = fn(&Bytes) -> Result<Bytes, Failure>;

const WAYS: [(&str, Pass); 3] =
    [("consort", spliced), ("serde_json::Value", as_value), ("rmcp types", as_types)];

/// Measures every sample.
pub(crate) fn measure(rounds: u32) -> Result<Vec<Row>, Failure> {
    samples::all().iter().map(|sample| row(sample, rounds)).collect()
}

fn row(sample: &Sample, rounds: u32) -> Result<Row, Failure> {
    for (_, pass) in WAYS {
        pass(&sample.bytes)?;
    }
    let subjects = WAYS
        .iter()
        .map(|(_, pass)| -> Subject<'_, _> { Box::new(|| pass(&sample.bytes)) })
        .collect();
    // Turns are short here, so there can be more of them.
    let seconds = in_turns(subjects, rounds * 5);
    let bytes = u32::try_from(sample.bytes.len())?;
    let ways = WAYS
        .iter()
        .zip(&seconds)
        .map(|((by, _), own)| Way {
            by,
            nanoseconds: median(own.iter().copied()) * 1e9,
            megabytes_per_second: f64::from(bytes) / median(own.iter().copied()) / 1e6,
            times_ours: ratio(own, &seconds[0]),
        })
        .collect();
    Ok(Row { message: sample.name, bytes: sample.bytes.len(), ways })
}

fn spliced(bytes: &Bytes) -> Result<Bytes, Failure> {
    match JsonRpcMessage::parse(bytes.clone())? {
        JsonRpcMessage::Response { result, .. } => {
            Ok(splice::response(&RequestId::from(u64::from(ID)), result.json()))
        }
        _ => Err("the sample is not a response".into()),
    }
}

fn as_value(bytes: &Bytes) -> Result<Bytes, Failure> {
    let mut message: Value = serde_json::from_slice(bytes)?;
    message["id"] = ID.into();
    Ok(serde_json::to_vec(&message)?.into())
}

fn as_types(bytes: &Bytes) -> Result<Bytes, Failure> {
    let mut message: ServerJsonRpcMessage = serde_json::from_slice(bytes)?;
    match &mut message {
        rmcp::model::JsonRpcMessage::Response(response) => {
            response.id = NumberOrString::Number(ID.into());
        }
        _ => return Err("the sample is not a response".into()),
    }
    Ok(serde_json::to_vec(&message)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_passes_on_the_same_message_under_the_new_id() {
        for sample in samples::all() {
            let mut expected: Value = serde_json::from_slice(&sample.bytes).unwrap();
            expected["id"] = ID.into();
            for (way, pass) in WAYS {
                let passed: Value = serde_json::from_slice(&pass(&sample.bytes).unwrap()).unwrap();
                assert!(passed == expected, "{way}: {}", sample.name);
            }
        }
    }
}
