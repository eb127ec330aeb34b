// Search from files: browsers start no Worker at file: addresses, so a hidden frame runs the script of the search.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.target = frame.contentWindow;
      this.target.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      this.loaded.then(() => this.target.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
