import { createTheme, type MantineColorsTuple } from '@mantine/core';

/** The accent colour: deep blue. */
const ink: MantineColorsTuple = [
  '#eef4fb',
  '#dbe6f3',
  '#b4cbe6',
  '#8aaed8',
  '#6795cc',
  '#4d84c4',
  '#3a72b2',
  '#2f6099',
  '#2a5182',
  '#21426b',
];

/** Neutral greys; dark 7 is the page, dark 6 a card. */
const dark: MantineColorsTuple = [
  '#d7dade',
  '#b4b9c0',
  '#9299a3',
  '#6d7580',
  '#434a54',
  '#333a43',
  '#252b33',
  '#1a1f26',
  '#141920',
  '#0f1318',
];

/** Muted colours for good, doubtful and bad. */
const teal: MantineColorsTuple = [
  '#eaf5ef',
  '#d5eadf',
  '#abd5bf',
  '#7fbf9d',
  '#5cac80',
  '#45a06e',
  '#389a63',
  '#2f8a4c',
  '#267344',
  '#1b5a35',
];
const yellow: MantineColorsTuple = [
  '#fbf3e4',
  '#f5e5c8',
  '#ebcb90',
  '#e1af55',
  '#d9982a',
  '#d08a1b',
  '#c98213',
  '#b87514',
  '#96600f',
  '#754a0a',
];
const red: MantineColorsTuple = [
  '#fbecec',
  '#f4d7d7',
  '#e8adad',
  '#dd8181',
  '#d45d5d',
  '#ce4848',
  '#c93f3f',
  '#c23b3b',
  '#a13030',
  '#7f2424',
];

export const theme = createTheme({
  primaryColor: 'ink',
  primaryShade: { light: 7, dark: 6 },
  colors: { ink, dark, teal, green: teal, yellow, orange: yellow, red },
  fontFamily: '"IBM Plex Sans", system-ui, sans-serif',
  fontFamilyMonospace: '"IBM Plex Mono", ui-monospace, monospace',
  headings: { fontFamily: '"IBM Plex Sans", system-ui, sans-serif', fontWeight: '600' },
  defaultRadius: 'md',
  cursorType: 'pointer',
  // Who asks for less motion waits for no transition.
  respectReducedMotion: true,
  components: {
    Card: { defaultProps: { withBorder: true, padding: 'md', radius: 'md' } },
    Badge: {
      defaultProps: { radius: 'sm' },
      styles: { root: { textTransform: 'none', fontWeight: 500, letterSpacing: 0, minWidth: 'max-content' } },
    },
    // A table that is wider than its place can be scrolled with the keyboard.
    TableScrollContainer: { defaultProps: { scrollAreaProps: { viewportProps: { tabIndex: 0 } } } },
    Modal: {
      styles: {
        content: { background: 'var(--loom-surface)' },
        header: { background: 'var(--loom-surface)' },
        title: { fontWeight: 600, fontSize: 16 },
      },
    },
    Tooltip: { defaultProps: { openDelay: 300, withArrow: true } },
    Table: { defaultProps: { verticalSpacing: 'xs', horizontalSpacing: 'sm' } },
  },
});
