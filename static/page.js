// What every page does with scripts on: the reader's zone, ages that stay true, one place for faults.
"use strict";

(() => {
  const root = document.documentElement;
  root.classList.add("live");

  // The server writes times in the zone that this cookie names; until it has been sent, we write
  // them ourselves, in the same form.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = root.dataset.zone === zone;
  if (!known && zone) {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax${secure}`;
  }

  const language = root.lang;
  const dayParts = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", year: "numeric" });
  const day = (moment) => {
    const parts = dayParts.formatToParts(moment);
    return ["day", "month", "year"].map((kind) => parts.find((part) => part.type === kind).value).join(" ");
  };
  const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const age = new Intl.RelativeTimeFormat(language, { style: "short" });
  const units = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];

  const ago = (moment) => {
    const passed = Math.max(1, (Date.now() - moment) / 1000);
    for (const [unit, seconds] of units) {
      if (passed >= seconds) return age.format(-Math.round(passed / seconds), unit);
    }
    return age.format(-Math.round(passed), "second");
  };

  const tell = (time) => {
    const moment = new Date(time.dateTime);
    const form = time.dataset.form;
    if (form === "ago") time.textContent = ago(moment);
    else if (!known) time.textContent = (form === "clock" ? "" : `${day(moment)}, `) + clock.format(moment);
    if (!known) time.title = `${day(moment)}, ${moment.toLocaleTimeString(language)} (${zone})`;
  };
  const tellAll = (part) => part.querySelectorAll("time[data-form]").forEach(tell);
  const tellAges = () => document.querySelectorAll('time[data-form="ago"]').forEach((time) => {
    const words = ago(new Date(time.dateTime));
    if (time.textContent !== words) time.textContent = words;
  });
  if (!known) {
    tellAll(document);
    const label = document.querySelector("[data-zone-label]");
    if (label && zone) label.textContent = zone;
  }
  setInterval(tellAges, 20000);
  document.addEventListener("htmx:load", (event) => { if (!known) tellAll(event.target); });

  // A poll that fails says so once, and takes it back when the server answers again.
  let toast = null;
  const say = (words) => {
    if (!toast) {
      toast = document.createElement("p");
      toast.className = "toast";
      toast.setAttribute("role", "status");
      document.body.append(toast);
    }
    if (toast.textContent !== words) toast.textContent = words;
  };
  const hush = () => { toast?.remove(); toast = null; };
  document.addEventListener("htmx:sendError", () => say(document.body.dataset.offline));
  document.addEventListener("htmx:responseError", () => say(document.body.dataset.refused));
  document.addEventListener("htmx:afterOnLoad", hush);

  // The icon of the tab follows the job's state; htmx itself takes over the title.
  document.addEventListener("htmx:load", () => {
    const state = document.querySelector("[data-favicon]")?.dataset.favicon;
    const icon = document.getElementById("favicon");
    if (state && !icon.href.endsWith(`/${state}.svg`)) icon.href = icon.href.replace(/[a-z]+\.svg$/, `${state}.svg`);
  });
})();
