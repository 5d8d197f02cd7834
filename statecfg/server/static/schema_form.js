// Forms for a JSON Schema. Users edit as JSON what plain fields can't show.
// The server validates the content against the schema; the form only helps to fill it in.

import { h } from "./dom.js";

const DEEPEST = 4; // maximum nesting of objects with their own fields
const NUMBERS = ["integer", "number"];

// Return the fields for a value. `root` is the whole schema, which resolves references.
export function fields(schema, value, root = schema, path = [], required = true) {
  const plain = resolved(schema, root);
  const hasFields = isObject(plain) && path.length <= DEEPEST && (value === undefined || isMap(value));
  if (!hasFields) return [field(plain, value, path, required)];
  const properties = plain.properties ?? {};
  const others = Object.fromEntries(Object.entries(value ?? {}).filter(([name]) => !Object.hasOwn(properties, name)));
  return [
    Object.entries(properties).map(([name, inner]) => {
      const isRequired = required && (plain.required ?? []).includes(name);
      const content = value && Object.hasOwn(value, name) ? value[name] : resolved(inner, root).default;
      const children = fields(inner, content, root, [...path, name], isRequired);
      return isObject(resolved(inner, root)) && path.length < DEEPEST ? h("fieldset", {}, h("legend", {}, name), hint(resolved(inner, root)), children) : children;
    }),
    otherKeys(others, path, value !== undefined, plain.additionalProperties !== false),
  ];
}

const isMap = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isObject = (schema) => typeOf(schema) === "object" && Object.keys(schema.properties ?? {}).length > 0;

// Return the type of a schema that allows only one, besides null; otherwise "".
function typeOf(schema) {
  const types = [schema.type ?? (schema.properties ? "object" : "")].flat().filter((type) => type !== "null");
  return types.length === 1 ? types[0] : "";
}

function resolved(schema, root) {
  let target = schema;
  for (let steps = 0; typeof target?.$ref === "string" && target.$ref.startsWith("#/") && steps < 10; steps += 1) {
    const names = target.$ref.slice(2).split("/").map((name) => decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~"));
    target = names.reduce((inner, name) => inner?.[name], root);
  }
  return target && typeof target === "object" ? target : {};
}

function field(schema, value, path, required) {
  const name = path.length ? path.join(".") : "content";
  const [type, input] = control(schema, value, required);
  input.dataset.path = JSON.stringify(path);
  input.dataset.type = type;
  if (required && type !== "json") input.required = true;
  input.dataset.key = `content ${name}`;
  return h("label.field", { "data-key": `label ${name}` }, h("span", {}, path.at(-1) ?? "Content", required ? h("span.bad", { title: "required" }, " *") : null), input, hint(schema));
}

const hint = (schema) => (schema.description ? h("span.dim", {}, schema.description) : null);

// Return the field for a value: its type and its element.
function control(schema, value, required) {
  const type = typeOf(schema);
  if (Array.isArray(schema.enum)) return ["choice", select(schema.enum, value, required)];
  if (type === "boolean" && (value === undefined || typeof value === "boolean")) return ["choice", select([true, false], value, required)];
  if (NUMBERS.includes(type) && (value === undefined || typeof value === "number")) {
    const limits = { min: number(schema.minimum), max: number(schema.maximum), step: type === "integer" ? "1" : "any" };
    return ["number", filled(h("input", { type: "number", ...limits }), value === undefined ? "" : String(value))];
  }
  // Text fields change carriage returns, so a string with one is edited as JSON.
  if (type === "string" && (value === undefined || (typeof value === "string" && !value.includes("\r")))) {
    const length = { minlength: schema.minLength, maxlength: schema.maxLength, "data-kept": value !== undefined };
    return ["string", filled(value?.includes("\n") ? h("textarea", { rows: "6", ...length }) : h("input", { type: "text", ...length }), value ?? "")];
  }
  return ["json", filled(h("textarea.json", { rows: "4", spellcheck: "false", placeholder: "JSON" }), value === undefined ? "" : JSON.stringify(value, null, 2))];
}

// Return a limit of a number field, or null. The server checks exclusive limits (`exclusiveMinimum: true` in draft 4).
const number = (limit) => (typeof limit === "number" ? limit : null);

// Set the exact text of a field. Everywhere else, the page escapes invisible characters.
function filled(input, text) {
  input.defaultValue = text;
  return input;
}

function select(values, value, required) {
  const chosen = JSON.stringify(value);
  const isListed = value === undefined || values.some((item) => JSON.stringify(item) === chosen);
  const options = (isListed ? values : [value, ...values]).map((item) => [JSON.stringify(item), typeof item === "string" ? item : JSON.stringify(item)]);
  const empty = required && value !== undefined ? [] : [["", "—"]];
  return h("select", {}, [...empty, ...options].map(([key, title]) => h("option", { value: key, selected: key === chosen }, title)));
}

// Return a field for the keys that the schema does not name. The text `{}` keeps an object without such keys.
function otherKeys(others, path, exists, allowed) {
  const text = exists ? JSON.stringify(others, null, 2) : "";
  const size = Object.keys(others).length ? "4" : "2";
  const input = filled(allowed ? h("textarea.json", { rows: size, spellcheck: "false", placeholder: "{}" }) : h("input", { type: "hidden" }), text);
  const name = `content ${path.join(".")} others`;
  Object.assign(input.dataset, { path: JSON.stringify(path), type: "others", key: name });
  if (!allowed) return input;
  return h("label.field", { "data-key": `label ${name}` }, h("span.dim", {}, path.length ? `Other keys of ${path.join(".")} (JSON)` : "Other keys (JSON)"), input);
}

// Return the content of a form, or null if a field is invalid. The invalid field then shows the problem.
export function content(form) {
  let result = {};
  for (const input of form.querySelectorAll("[data-path]")) {
    input.setCustomValidity("");
    const path = JSON.parse(input.dataset.path);
    const [value, problem] = parsed(input);
    if (problem) {
      input.setCustomValidity(problem);
      input.reportValidity();
      return null;
    }
    if (value === undefined) continue;
    if (!path.length && input.dataset.type !== "others") result = value;
    else if (input.dataset.type !== "others") set(inside(result, path.slice(0, -1)), path.at(-1), value);
    else add(inside(result, path), value);
  }
  return result;
}

// Return the object at a path. Create it if it is missing.
function inside(object, path) {
  let target = object;
  for (const name of path) {
    if (!Object.hasOwn(target, name) || !isMap(target[name])) set(target, name, {});
    target = target[name];
  }
  return target;
}

function add(object, others) {
  for (const [name, value] of Object.entries(others)) set(object, name, value);
}

// Set a key. This also works for keys such as `__proto__`.
function set(object, name, value) {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function parsed(input) {
  const { value } = input;
  // An empty field means no value, unless the field had a value when the form opened.
  if (input.dataset.type === "string") return [value === "" && !("kept" in input.dataset) ? undefined : value];
  if (value.trim() === "") return [undefined];
  if (input.dataset.type === "number") return [Number(value)];
  try {
    const json = JSON.parse(value);
    return input.dataset.type === "others" && !isMap(json) ? [undefined, "Enter a JSON object."] : [json];
  } catch (problem) {
    return [undefined, `This is not JSON: ${problem.message}`];
  }
}

// Return whether the browser can represent all numbers in a value exactly.
export function isExact(value) {
  if (typeof value === "number") return !Number.isInteger(value) || Number.isSafeInteger(value);
  return typeof value !== "object" || value === null || Object.values(value).every(isExact);
}
