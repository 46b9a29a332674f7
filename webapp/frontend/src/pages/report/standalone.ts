/** A report's page as one HTML file that needs neither the server nor a network. */

interface Contents {
  /** What the page shows of the report. */
  body: HTMLElement;
  title: string;
  /** The line below the title. */
  about: string;
  /** Where the report is on the server. */
  address: string;
  /** The report as JSON: the file offers it for scripts. */
  json: string;
}

/** Nothing is loaded or carried out: styles and pictures are in the file itself. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
const CONTROLS =
  'button, input, [role="radiogroup"], .mantine-Switch-root, [data-no-print], [data-not-exported]';

/**
 * The text of the file: drawings become pictures, folded parts can be unfolded, controls go. An element that is marked
 * as `data-not-exported` goes too, and one as `data-only-exported`, hidden on the page, is shown in its place.
 */
export function standalone({ body, title, about, address, json }: Contents): string {
  const page = document.implementation.createHTMLDocument(title);
  for (const { name, value } of document.documentElement.attributes)
    page.documentElement.setAttribute(name, value);
  const policy = page.createElement('meta');
  policy.httpEquiv = 'Content-Security-Policy';
  policy.content = POLICY;
  const charset = page.createElement('meta');
  charset.setAttribute('charset', 'utf-8');
  const styles = page.createElement('style');
  styles.textContent = `${stylesOf(document)}\nbody { max-width: 1440px; margin: 0 auto; padding: 24px }`;
  page.head.prepend(charset, policy);
  page.head.append(styles);

  const head = page.createElement('header');
  const links = page.createElement('p');
  links.append(
    link(page, address, address),
    ' · ',
    link(page, jsonAddress(json), 'the report as JSON', 'report.json'),
  );
  head.append(text(page, 'h1', title), text(page, 'p', about), links);
  page.body.append(head, page.importNode(still(body), true));
  return `<!doctype html>\n${page.documentElement.outerHTML}`;
}

/** A copy of what is shown now in which nothing moves or asks. */
function still(body: HTMLElement): HTMLElement {
  const copy = body.cloneNode(true) as HTMLElement;
  const pairs = <E extends Element>(selector: string) => {
    const copies = [...copy.querySelectorAll<E>(selector)];
    return [...body.querySelectorAll<E>(selector)].map((own, at) => [own, copies[at]!] as const);
  };
  const drawings = pairs<HTMLCanvasElement>('canvas');
  for (const [own, copied] of drawings) copied.replaceWith(picture(own));
  for (const item of copy.querySelectorAll('.mantine-Accordion-item')) item.replaceWith(folded(item));
  for (const control of copy.querySelectorAll(CONTROLS)) control.remove();
  for (const shown of copy.querySelectorAll('[data-only-exported]')) shown.removeAttribute('hidden');
  for (const place of copy.querySelectorAll('a[href]'))
    place.setAttribute('href', new URL(place.getAttribute('href') ?? '', location.href).href);
  return copy;
}

function picture(canvas: HTMLCanvasElement): HTMLImageElement {
  const image = document.createElement('img');
  image.src = canvas.width && canvas.height ? canvas.toDataURL() : '';
  image.alt = canvas.getAttribute('aria-label') ?? '';
  image.className = canvas.className;
  image.style.cssText = canvas.style.cssText;
  image.style.width = `${canvas.clientWidth}px`;
  image.style.height = `${canvas.clientHeight}px`;
  return image;
}

/** A part of an accordion as a browser folds it without a script. */
function folded(item: Element): HTMLElement {
  const details = document.createElement('details');
  const summary = document.createElement('summary');
  summary.textContent = item.querySelector('button')?.textContent ?? '';
  details.append(summary, ...item.querySelectorAll('pre, table'));
  return details;
}

/** All styles of a document but its fonts, which would have to be loaded. */
function stylesOf(from: Document): string {
  return [...from.styleSheets]
    .flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => !(rule instanceof CSSFontFaceRule))
    .map((rule) => rule.cssText)
    .join('\n');
}

function text(page: Document, tag: 'h1' | 'p', words: string): HTMLElement {
  const element = page.createElement(tag);
  element.textContent = words;
  return element;
}

function link(page: Document, to: string, words: string, file?: string): HTMLAnchorElement {
  const anchor = page.createElement('a');
  anchor.href = to;
  anchor.textContent = words;
  if (file) anchor.download = file;
  return anchor;
}

const jsonAddress = (json: string) => `data:application/json;charset=utf-8,${encodeURIComponent(json)}`;
