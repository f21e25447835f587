// The entry: styles, the stored theme, the frame.
import { render } from "preact";
import "./style/all.css";
import { App } from "./app";
import { applyTheme } from "./theme";

applyTheme();
render(<App />, document.getElementById("app")!);
