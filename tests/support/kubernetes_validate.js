// SPDX-License-Identifier: BSD-3-Clause
// Validates objects of Kubernetes by the schemas that Kubernetes publishes, as the npm package kubernetes-models has compiled them.
//
//     node kubernetes_validate.js NODE_MODULES
//
// Each line of the input is [SCHEMA, VALUE] in JSON, each line of the output the list of what is wrong with that value.
//
// The compiled schemas let unknown fields pass. But they look at every field that they know. So they are given the value
// behind proxies which note what is looked at, and what is left is unknown.

const fs = require("fs");
const path = require("path");
const readline = require("readline");

const FOLDERS = ["kubernetes-models", "@kubernetes-models/apimachinery"];

function validatorOf(schema) {
  const files = FOLDERS.map((folder) => path.join(path.resolve(process.argv[2]), folder, "_schemas", `${schema}.js`));
  return require(files.find(fs.existsSync) ?? files[0]).validate;
}

/** The value behind proxies; `unread` gets an entry [place, set of fields] for each object in it. */
function watched(value, place, unread) {
  if (value === null || typeof value !== "object") return value;
  const fields = new Set(Array.isArray(value) ? [] : Object.keys(value));
  const parts = {};
  unread.push([place, fields]);
  return new Proxy(value, {
    get(target, name) {
      if (!Object.hasOwn(target, name)) return target[name];
      fields.delete(name);
      return (parts[name] ??= watched(target[name], `${place}/${name}`, unread));
    },
  });
}

function inWords(error) {
  const { instancePath: place, keyword, params } = error;
  if (keyword === "required") return `${place}/${params.missingProperty} is missing`;
  if (keyword === "type") return `${place} is not of the type ${params.type}`;
  return `${place}: ${keyword} ${JSON.stringify(params)}`;
}

function complaints(schema, value) {
  const validate = validatorOf(schema);
  const unread = [];
  if (!validate(watched(value, "", unread))) return validate.errors.map(inWords);
  return unread.flatMap(([place, fields]) => [...fields].map((field) => `${place}/${field} is unknown`));
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  console.log(JSON.stringify(complaints(...JSON.parse(line))));
});
