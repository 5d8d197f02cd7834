// The address of the current view, in the fragment of the URL: #/section/argument?name=value.
// So each view has a link, and the back button returns to it.

export function read() {
  const [path, query = ""] = split(location.hash.replace(/^#\/?/, ""), "?");
  const [section, argument = ""] = split(path, "/");
  return { section, argument: decoded(argument), query: new URLSearchParams(query) };
}

export const param = (name, otherwise = "") => read().query.get(name) ?? otherwise;

// Return the link to a view. Parameters without a value are omitted.
export function to(section, argument = "", parameters = {}) {
  const path = argument ? `#/${section}/${encodeURIComponent(argument)}` : `#/${section}`;
  const query = String(new URLSearchParams(nonEmpty(parameters)));
  return query ? `${path}?${query}` : path;
}

// Return the link to the same view with other parameters.
export function changed(parameters) {
  const { section, argument, query } = read();
  return to(section, argument, { ...Object.fromEntries(query), ...parameters });
}

// Return a path of the API with a query.
export function listed(path, parameters) {
  const query = String(new URLSearchParams(nonEmpty(parameters)));
  return query ? `${path}?${query}` : path;
}

const nonEmpty = (parameters) => Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);

function split(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch (problem) {
    if (problem instanceof URIError) return text;
    throw problem;
  }
}
