// Sends the chosen recordings one after another, each with its own progress and its own end.
"use strict";

(() => {
  const form = document.getElementById("upload");
  if (!form) return;
  const words = form.dataset;
  const input = document.getElementById("file");
  const drop = document.getElementById("drop");
  const list = document.getElementById("handed-list");
  const said = document.getElementById("upload-said");
  const percent = new Intl.NumberFormat(document.documentElement.lang, { style: "percent" });
  const queue = [];
  let sending = null;
  let sent = 0;
  let handedIn = 0;

  class Sending {
    constructor(file) {
      this.file = file;
      this.number = sent++;
      const row = document.getElementById("sending").content.firstElementChild.cloneNode(true);
      this.row = row;
      this.name = row.querySelector(".name");
      this.bar = row.querySelector("progress");
      this.line = row.querySelector(".line");
      this.stop = row.querySelector(".stop");
      this.retry = row.querySelector(".retry");
      this.name.textContent = file.name;
      this.stop.setAttribute("aria-label", `${this.stop.textContent}: ${file.name}`);
      this.retry.setAttribute("aria-label", `${this.retry.textContent}: ${file.name}`);
      this.stop.addEventListener("click", () => this.cancel());
      this.retry.addEventListener("click", () => enqueue(this));
      list.prepend(row);
    }

    wait() {
      this.bar.hidden = false;
      this.bar.value = 0;
      this.stop.hidden = false;
      this.retry.hidden = true;
      delete this.line.dataset.tone;
    }

    start(done) {
      const body = new FormData();
      body.append("nonce", form.elements.nonce.value);
      body.append("number", this.number);
      body.append("language", form.elements.language.value);
      body.append("file", this.file, this.file.name);
      const request = new XMLHttpRequest();
      this.request = request;
      request.open("POST", form.action);
      request.setRequestHeader("Accept", "application/json");
      request.upload.onprogress = (event) => {
        const share = event.lengthComputable ? event.loaded / event.total : 0;
        this.bar.value = share;
        this.line.textContent = share < 1 ? percent.format(Math.floor(share * 100) / 100) : words.saving;
      };
      request.onload = () => { this.answered(request); done(); };
      request.onerror = () => { this.fail(words.lost); done(); };
      request.onabort = () => { this.fail(words.stopped); done(); };
      request.send(body);
    }

    answered(request) {
      // A proxy in between may answer in HTML: only what parses is ours.
      let told = {};
      try { told = JSON.parse(request.responseText); } catch { /* the status says enough */ }
      if (request.status === 401) { location.assign(`/login?next=${encodeURIComponent(location.pathname)}`); return; }
      if (request.status >= 300 || !told.page) {
        const large = request.status === 413 ? words.refusedLarge : words.refused.replace("{status}", request.status);
        this.fail(told.detail || large, request.status < 500 && request.status !== 408);
        return;
      }
      this.accept(told);
    }

    accept(told) {
      handedIn += 1;
      const link = document.createElement("a");
      link.className = "name";
      link.href = told.page;
      link.textContent = told.name;
      this.name.replaceWith(link);
      said.textContent = `${told.name}: ${said.dataset.handedIn}`;
      this.row.querySelector(".toolbar").remove();
      this.bar.remove();
      if (told.same_bytes) {
        const before = document.getElementById("seen-before").content.cloneNode(true);
        before.querySelector("form").action = told.again;
        this.line.replaceWith(before);
        this.isOld = true;
        return;
      }
      this.page = told.page;
      this.line.textContent = "";
      this.line.setAttribute("hx-get", told.line);
      this.line.setAttribute("hx-trigger", "load");
      this.line.setAttribute("hx-swap", "outerHTML");
      htmx.process(this.line);
    }

    fail(sentence, isFinal = false) {
      said.textContent = `${this.file.name}: ${sentence}`;
      this.line.textContent = sentence;
      this.line.dataset.tone = "failed";
      this.bar.hidden = true;
      this.stop.hidden = true;
      this.retry.hidden = isFinal;
    }

    cancel() {
      if (sending === this) { this.request.abort(); return; }
      queue.splice(queue.indexOf(this), 1);
      this.fail(words.stopped);
    }
  }

  const enqueue = (item) => { item.wait(); queue.push(item); next(); };

  const next = () => {
    if (sending || !queue.length) return;
    sending = queue.shift();
    const item = sending;
    item.start(() => {
      sending = null;
      // One recording alone: its own page shows the rest, as it does without scripts.
      if (item.page && sent === 1) { location.assign(item.page); return; }
      next();
    });
  };

  const take = (files) => {
    if (!files.length) return;
    document.getElementById("handed").hidden = false;
    for (const file of files) {
      const item = new Sending(file);
      if (file.size === 0) item.fail(words.empty, true);
      else if (file.size > Number(words.maxBytes)) item.fail(words.tooLarge, true);
      else enqueue(item);
    }
  };

  input.addEventListener("change", () => { take([...input.files]); input.value = ""; });
  form.addEventListener("submit", (event) => event.preventDefault());

  // A file dropped beside the target would make the browser leave the page.
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0;
  document.addEventListener("dragenter", (event) => {
    if (holdsFiles(event)) { depth += 1; drop.dataset.over = ""; }
  });
  document.addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (!depth) delete drop.dataset.over;
  });
  document.addEventListener("dragover", (event) => { if (holdsFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    depth = 0;
    delete drop.dataset.over;
    take([...event.dataTransfer.files]);
  });

  window.addEventListener("beforeunload", (event) => {
    if (sending || queue.length) event.preventDefault();
  });
})();
