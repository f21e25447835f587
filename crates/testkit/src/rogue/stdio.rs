//! The rogue on standard input and output.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Stdout};
use tokio::sync::{Mutex, mpsc};

use super::{Brain, Step};

/// Serves until standard input closes. Calls run concurrently, as in a real server.
pub async fn serve(brain: Arc<Brain>) {
    tokio::time::sleep(Duration::from_millis(brain.manner.slow_start)).await;
    let out = Arc::new(Mutex::new(Some(tokio::io::stdout())));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let (asked, answers) = mpsc::unbounded_channel::<Value>();
    let answers = Arc::new(Mutex::new(answers));
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if message["method"].is_null() {
            let _ = asked.send(message.clone());
        }
        let steps = brain.react(&message);
        let (out, answers) = (Arc::clone(&out), Arc::clone(&answers));
        if message["params"]["name"] == "ask" {
            tokio::spawn(ask(message, out, answers));
        } else {
            let brain = Arc::clone(&brain);
            tokio::spawn(async move { follow(&brain, steps, &out).await });
        }
    }
}

/// Sends a request to the client and forwards its response.
async fn ask(message: Value, out: Out, answers: Arc<Mutex<mpsc::UnboundedReceiver<Value>>>) {
    let arguments = &message["params"]["arguments"];
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": arguments["method"], "params": arguments["params"] });
    perform(&[Step::Message(question.to_string())], &out).await;
    let answer = answers.lock().await.recv().await;
    let result = json!({ "content": [], "answer": answer });
    perform(&super::brain::answer(&message["id"], &result), &out).await;
}

/// Takes steps, and waits at each request of its own for the response.
async fn follow(brain: &Brain, steps: Vec<Step>, out: &Out) {
    let (mut dribble, mut answer) = (false, String::new());
    for step in steps {
        match step {
            Step::Ask(text) => {
                let (id, response) = brain.ask();
                let text = text.replace("$ASK", &format!("\"{id}\""));
                perform_one(&Step::Message(text), out, &mut dribble).await;
                let Ok(response) = response.await else { return };
                answer = response.to_string();
            }
            Step::Message(text) => {
                let step = Step::Message(text.replace("$ANSWER", &answer));
                perform_one(&step, out, &mut dribble).await;
            }
            step => perform_one(&step, out, &mut dribble).await,
        }
    }
}

type Out = Arc<Mutex<Option<Stdout>>>;

async fn perform(steps: &[Step], out: &Out) {
    let mut dribble = false;
    for step in steps {
        perform_one(step, out, &mut dribble).await;
    }
}

async fn perform_one(step: &Step, out: &Out, dribble: &mut bool) {
    let bytes = match step {
        Step::Message(text) => format!("{text}\n").into_bytes(),
        Step::Filled(text, letters) => format!("{}\n", Step::filled(text, *letters)).into_bytes(),
        Step::Text(text) => text.clone().into_bytes(),
        Step::Hex(digits) => super::http::unhex(digits),
        Step::Repeat(text, count) => text.repeat(*count).into_bytes(),
        Step::Answer(id) => {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n").into_bytes()
        }
        Step::Dribble => {
            *dribble = true;
            return;
        }
        Step::Sleep(time) => {
            tokio::time::sleep(Duration::from_millis(*time)).await;
            return;
        }
        Step::Cut => {
            *out.lock().await = None;
            // The descriptor itself stays open behind tokio's back, so the process must go.
            std::process::exit(0);
        }
        Step::Exit(code) => std::process::exit(*code),
        Step::Ask(_) | Step::Hang | Step::Status(..) => return std::future::pending().await,
    };
    let mut out = out.lock().await;
    let Some(out) = out.as_mut() else { return };
    let size = if *dribble { 1 } else { bytes.len().max(1) };
    for chunk in bytes.chunks(size) {
        if out.write_all(chunk).await.is_err() || out.flush().await.is_err() {
            return std::future::pending().await;
        }
    }
}
