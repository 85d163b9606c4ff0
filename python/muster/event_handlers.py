# SPDX-License-Identifier: BSD-3-Clause
"""Handlers of events by the names that `--event-log-handler` and event_log_handler take, as those of
torch/distributed/elastic/events/handlers.py."""

import logging
import sys

OWN = ("null", "console", "dynamic_rendezvous")  # names that Muster knows itself
THEIRS = "torch.distributed.elastic.events.handlers"

_handlers = {}


def register_event_handler(name, handler):
    """Makes `--event-log-handler NAME` of jobs that this process runs a handler of its own, as TorchElastic's are: a
    logging.Handler, whose records have an event as text in JSON, or a function that is called with this text. It is called
    in this process, one event after the other; for muster.run on a thread, until 5 seconds after the end of the job. One that raises
    costs that event."""
    if name in OWN or not name or ":" in name:
        raise ValueError(f"{name!r} cannot be the name of a handler of one's own")
    _handlers[name] = handler


def event_handler(name):
    """A function that takes an event of the handler that the program has registered here, or with PyTorch; else None."""
    found = _handlers.get(name)
    if found is None and name not in OWN:
        found = getattr(sys.modules.get(THEIRS), "_log_handlers", {}).get(name)
    return None if found is None else lambda text: _handle(found, text)


def _handle(handler, text):
    try:
        if isinstance(handler, logging.Handler):
            handler.handle(logging.LogRecord("torchelastic", logging.INFO, __file__, 0, text, None, None))
        else:
            handler(text)
    except Exception:
        logging.getLogger(__name__).exception("the handler of events has failed, and the job goes on")
