// Moves the invitation from the address, where it could be seen or copied, into the form.
"use strict";

(() => {
  const token = location.hash.slice(1);
  if (!token) return;
  document.getElementById("invitation").value = token;
  document.getElementById("invitation-field").hidden = true;
  history.replaceState(null, "", location.pathname);
  document.getElementById("name").focus();
})();
