// Loaded before a peer that has no option for it: what it serves is reached from this machine only.
const { Server } = require("node:net");
const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  return typeof rest[0] === "string" || typeof port === "object"
    ? listen.call(this, port, ...rest)
    : listen.call(this, port, "127.0.0.1", ...rest);
};
