"use strict";

const at = id => document.getElementById(id);
let messages = [];
let underWay = null;

function headers() {
  const all = { "Content-Type": "application/json" };
  if (at("key").value) {
    all.Authorization = "Bearer " + at("key").value;
  }
  return all;
}

function show(role, text) {
  const place = document.createElement("p");
  place.className = role;
  place.textContent = text;
  at("messages").append(place);
  place.scrollIntoView();
  return place;
}

async function problem(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return "the server answered " + response.status;
  }
}

async function send() {
  const text = at("text").value;
  if (underWay || !text.trim()) {
    return;
  }
  messages.push({ role: "user", content: text });
  show("user", text);
  at("text").value = "";
  underWay = new AbortController();
  at("send").hidden = true;
  at("stop").hidden = false;
  const place = show("assistant", "");
  let said = "";
  try {
    const response = await fetch("v1/chat/completions", {
      method: "POST",
      headers: headers(),
      signal: underWay.signal,
      body: JSON.stringify({
        messages,
        stream: true,
        temperature: Number(at("temperature").value),
        max_tokens: Number(at("tokens").value),
      }),
    });
    if (!response.ok) {
      throw new Error(await problem(response));
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + part.value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data: ") || line === "data: [DONE]") {
          continue;
        }
        const event = JSON.parse(line.slice("data: ".length));
        if (event.error) {
          throw new Error(event.error.message);
        }
        said += event.choices[0]?.delta.content ?? "";
        place.textContent = said;
        place.scrollIntoView({ block: "end" });
      }
    }
  } catch (error) {
    if (error.name !== "AbortError") {
      show("error", error.message);
    }
  }
  messages.push({ role: "assistant", content: said });
  underWay = null;
  at("send").hidden = false;
  at("stop").hidden = true;
}

at("form").addEventListener("submit", event => {
  event.preventDefault();
  send();
});
at("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});
at("stop").addEventListener("click", () => underWay?.abort());
at("anew").addEventListener("click", () => {
  underWay?.abort();
  messages = [];
  at("messages").replaceChildren();
});
fetch("v1/models", { headers: headers() })
  .then(response => response.json())
  .then(list => { at("model").textContent = list.data[0].id; })
  .catch(() => {})
  .finally(() => { document.body.dataset.loaded = "yes"; });
