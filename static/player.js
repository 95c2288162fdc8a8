// The sound follows the text and the text the sound: click a sentence to hear it.
"use strict";

(() => {
  const page = document.querySelector(".job");
  if (!page) return;
  const sound = () => document.getElementById("sound");
  let parts = [];
  let starts = [];
  let current = null;
  let last = null;

  const gather = () => {
    parts = [...document.querySelectorAll("#transcript [data-start]")];
    starts = parts.map((part) => Number(part.dataset.start));
    current = last = null;
    const audio = sound();
    if (!audio || audio.dataset.followed) return;
    audio.dataset.followed = "";
    audio.addEventListener("timeupdate", follow);
    audio.addEventListener("seeked", follow);
  };

  const at = (seconds) => {
    let low = 0;
    let high = starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= seconds + 0.05) low = middle + 1; else high = middle;
    }
    const part = parts[low - 1];
    return part && seconds < Number(part.dataset.end) + 0.5 ? part : null;
  };

  const inView = (part) => {
    const box = part.getBoundingClientRect();
    return box.bottom > 0 && box.top < window.innerHeight;
  };

  const follow = () => {
    const part = at(sound().currentTime);
    if (part === current) return;
    // Whoever has scrolled away to read something else is left alone, after a silence too.
    const wasRead = !last || inView(last);
    current?.removeAttribute("aria-current");
    current = part;
    if (!part) return;
    last = part;
    part.setAttribute("aria-current", "true");
    if (wasRead && !sound().paused) part.scrollIntoView({ block: "nearest", behavior: "smooth" });
  };

  const hear = (seconds) => {
    const audio = sound();
    if (!audio) return;
    audio.currentTime = seconds;
    audio.play().catch(() => { /* the browser shows by its own controls that it cannot */ });
  };

  page.addEventListener("click", (event) => {
    const link = event.target.closest("[data-at]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      hear(Number(link.dataset.at));
      return;
    }
    const part = event.target.closest("#transcript [data-start]");
    // Marking words to copy them is not a wish to hear them.
    if (part && getSelection().isCollapsed) hear(Number(part.dataset.start));
  });

  document.addEventListener("keydown", (event) => {
    const audio = sound();
    if (!audio || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, audio, button, summary")) return;
    // By the place of the key: under a Cyrillic layout the letters are others.
    const keys = {
      KeyK: () => (audio.paused ? hear(audio.currentTime) : audio.pause()),
      KeyJ: () => { audio.currentTime = Math.max(0, audio.currentTime - 10); },
      KeyL: () => { audio.currentTime += 10; },
    };
    const act = keys[event.code];
    if (act) { event.preventDefault(); act(); }
  });

  page.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const paragraphs = [...document.querySelectorAll(`${button.dataset.copy} .paragraph p`)];
    const said = button.parentElement.querySelector("[role=status]");
    try {
      await navigator.clipboard.writeText(paragraphs.map((part) => part.innerText).join("\n\n"));
      said.textContent = button.dataset.said;
    } catch {
      said.textContent = button.dataset.failed;
    }
  });

  document.addEventListener("htmx:load", gather);
  document.addEventListener("htmx:oobAfterSwap", gather);
  gather();
})();
