//! A call of a tool on its way through a toolbox, in whichever form it came.

use std::sync::Arc;

use consort_core::{
    CallError, Caller, Catalog, Emitter, Emitting, Entry, Event, Events, Invocation, Json,
    MissingName, Object, Outcome, Passage, RefusedCall, RefusedTarget, ServerId, ShelfKind, Target,
    ToolResult, Toolbox,
};

/// A call of a tool.
#[derive(Debug)]
pub(crate) enum Call {
    /// By name.
    Invoked(Invocation),
    /// By server and name, as a client wrote it.
    Passed(Passage),
}

impl Call {
    /// Whether a passage is one.
    pub(crate) fn is(passage: &Passage) -> bool {
        passage.method == "tools/call"
    }

    pub(crate) fn caller(&self) -> &Caller {
        match self {
            Self::Invoked(invocation) => &invocation.caller,
            Self::Passed(passage) => &passage.caller,
        }
    }

    /// Returns the position of the tool that is meant among a catalog's tools.
    pub(crate) fn position(&self, catalog: &Catalog) -> Result<usize, CallError> {
        self.find(catalog).ok_or_else(|| self.unknown(catalog))
    }

    /// The same, or nothing.
    pub(crate) fn find(&self, catalog: &Catalog) -> Option<usize> {
        match self {
            Self::Invoked(Invocation { target, .. }) => {
                catalog.tools.position(&target.server, &target.name)
            }
            Self::Passed(passage) => {
                let name = passage.get("name");
                let name = name.as_ref().and_then(Json::text).unwrap_or_default();
                catalog.tools.position(&passage.server, &name)
            }
        }
    }

    /// That a catalog does not have the tool that is meant.
    pub(crate) fn unknown(&self, catalog: &Catalog) -> CallError {
        let unknown = match self {
            Self::Invoked(Invocation { target, .. }) => {
                catalog.unknown(ShelfKind::Tools, &target.to_string())
            }
            Self::Passed(passage) => {
                let name = passage.get("name");
                let name = name.as_ref().and_then(Json::text).unwrap_or_default();
                catalog.missing(ShelfKind::Tools, &passage.server, &name)
            }
        };
        unknown.into()
    }

    /// Returns the name of the tool as it was written.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Invoked(invocation) => invocation.target.to_string(),
            Self::Passed(passage) => {
                let name = passage.get("name");
                name.as_ref().and_then(Json::text).unwrap_or_default().into_owned()
            }
        }
    }

    /// Returns it as a call that was refused: of this tool, with these arguments.
    pub(crate) fn refused(&self, server: Option<&ServerId>, name: &str) -> RefusedCall {
        RefusedCall {
            caller: self.caller().clone(),
            method: "tools/call".into(),
            target: RefusedTarget { server: server.cloned(), name: name.to_owned() },
            arguments: Some(self.arguments()),
            error: None,
        }
    }

    /// The arguments so far; an empty object if none are given.
    pub(crate) fn arguments(&self) -> Json {
        let given = match self {
            Self::Invoked(invocation) => Some(invocation.arguments.clone()),
            Self::Passed(passage) => passage.get("arguments"),
        };
        given.unwrap_or_else(|| Object::empty().json().clone())
    }

    /// The same call with other arguments.
    pub(crate) fn set_arguments(&mut self, arguments: Json) {
        match self {
            Self::Invoked(invocation) => invocation.arguments = arguments,
            Self::Passed(passage) => passage.set("arguments", arguments),
        }
    }

    /// The same call of a tool of a server.
    pub(crate) fn set_tool(&mut self, server: &ServerId, name: &str) {
        match self {
            Self::Invoked(invocation) => {
                invocation.target = Target { server: server.clone(), name: name.to_owned() };
            }
            Self::Passed(passage) => {
                if passage.server != *server {
                    passage.server = server.clone();
                }
                let given = passage.get("name");
                if given.as_ref().and_then(Json::text).as_deref() != Some(name) {
                    passage.set("name", Json::string(name));
                }
            }
        }
    }

    /// Makes the call.
    pub(crate) fn make(self, toolbox: &dyn Toolbox) -> Events {
        match self {
            Self::Invoked(invocation) => toolbox.call(invocation),
            Self::Passed(passage) => toolbox.pass(passage),
        }
    }
}

/// A call that is over before it began.
pub(crate) fn ended(end: Result<Outcome, CallError>) -> Events {
    Emitting::new(|_| std::future::ready(Event::End(end)))
}

/// A call that was answered by ourselves.
pub(crate) fn answered(result: ToolResult) -> Events {
    ended(Ok(Outcome::Complete(result)))
}

/// A call of a tool that is not known: what to do once the servers that may have it are waited for.
pub(crate) struct SoughtCall {
    pub(crate) call: Call,
    pub(crate) missing: MissingName,
    /// The answer if nobody has it.
    pub(crate) otherwise: ToolResult,
}

impl SoughtCall {
    /// Makes the call of the tool that `find` finds in the catalog as it is then, with the arguments it returns
    /// beside the tool, or answers with the reason for which they cannot be used.
    pub(crate) fn make(
        self,
        toolbox: Arc<dyn Toolbox>,
        find: impl FnOnce(&Catalog) -> Option<(Entry, Result<Json, String>)> + Send + 'static,
    ) -> Events {
        let Self { mut call, missing, otherwise } = self;
        let server = missing.servers.first().filter(|_| missing.named);
        let mut refused = call.refused(server, &missing.name);
        Emitting::new(|emitter| async move {
            let found = match toolbox.find_missing(missing).await {
                Ok(true) => find(&toolbox.catalog(call.caller())),
                Ok(false) => None,
                Err(error) => {
                    refused.error = Some(error.clone());
                    toolbox.refused(&refused);
                    return Event::End(Err(error));
                }
            };
            let Some((entry, inputs)) = found else {
                toolbox.refused(&refused);
                return Event::End(Ok(Outcome::Complete(otherwise)));
            };
            let inputs = match inputs {
                Ok(inputs) => inputs,
                Err(reason) => return Event::End(Ok(Outcome::Complete(ToolResult::error(reason)))),
            };
            call.set_tool(&entry.route.server, &entry.name);
            call.set_arguments(inputs);
            follow(call.make(&*toolbox), &emitter).await
        })
    }
}

/// Passes events on, and the result of a call that completed through a function.
pub(crate) fn mapped(
    events: Events,
    map: impl FnOnce(ToolResult) -> ToolResult + Send + 'static,
) -> Events {
    Emitting::new(|emitter| async move {
        match follow(events, &emitter).await {
            Event::End(Ok(Outcome::Complete(result))) => {
                Event::End(Ok(Outcome::Complete(map(result))))
            }
            end => end,
        }
    })
}

/// Passes events on up to the end, and gives that back.
pub(crate) async fn follow(mut events: Events, emitter: &Emitter<Event>) -> Event {
    loop {
        match events.next().await {
            Some(end @ Event::End(_)) => return end,
            Some(event) => emitter.emit(event).await,
            None => unreachable!("an end comes before nothing"),
        }
    }
}
