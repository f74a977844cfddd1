"use strict";
function element(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}
fetch("/openapi.json").then((answer) => answer.json()).then((api) => {
  const place = document.getElementById("operations");
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, told] of Object.entries(methods)) {
      const section = document.createElement("section"), list = document.createElement("dl");
      section.append(element("h2", method.toUpperCase() + " " + path), element("p", told.summary));
      const body = told.requestBody && told.requestBody.content["application/json"].schema;
      for (const [name, field] of Object.entries(body ? body.properties : {})) {
        const kind = field.enum ? field.enum.join(" | ") : field.type || "integer, string or null";
        const must = body.required.includes(name) ? ", required" : "";
        list.append(element("dt", name), element("dd", kind + must + ": " + field.description));
      }
      section.append(list, element("p", "Status: " + Object.keys(told.responses).sort().join(", ")));
      place.append(section);
    }
});
