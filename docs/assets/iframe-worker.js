// Browsers start no worker for a page that is opened as a file. Then search runs in a frame instead.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const page = this.frame.contentDocument
      page.open()
      page.write("<!doctype html><title>search</title><body>")
      page.close()
      this.inside = this.frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside.importScripts = (...addresses) => Promise.all(addresses.map(a => this.load(a)))
      this.ready = this.load(address)
    }

    load(address) {
      return new Promise((done, failed) => {
        const script = this.frame.contentDocument.createElement("script")
        script.src = new URL(address, document.baseURI).href
        script.onload = done
        script.onerror = failed
        this.frame.contentDocument.body.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
  window.Worker = window.IFrameWorker
}
