  // Elements. Text is always set as text, so that no name can become markup.
  const SVG = "http://www.w3.org/2000/svg";
  const put = (element, attributes, children) => {
    for (const [key, value] of Object.entries(attributes || {})) if (value !== null && value !== undefined) element.setAttribute(key, value);
    for (const child of children) if (child !== null && child !== undefined) element.append(child);
    return element;
  };
  const html = (name, attributes, ...children) => put(document.createElement(name), attributes, children);
  const svg = (name, attributes, ...children) => put(document.createElementNS(SVG, name), attributes, children);
  const text = (content, x, y, attributes) => svg("text", { x, y, ...attributes }, content);
  const upper = (words) => words[0].toUpperCase() + words.slice(1);
