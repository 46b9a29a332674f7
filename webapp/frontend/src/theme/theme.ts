import { createTheme, type MantineColorsTuple } from '@mantine/core';

/** Deep blue of dyed yarn: the one accent of the interface. */
const ink: MantineColorsTuple = [
  '#eef4fb', '#dbe6f3', '#b4cbe6', '#8aaed8', '#6795cc', '#4d84c4', '#3a72b2', '#2f6099', '#2a5182', '#21426b',
];

/** Neutral greys with a little warmth; dark 7 is the page, dark 6 a card. */
const dark: MantineColorsTuple = [
  '#d7dade', '#b4b9c0', '#9299a3', '#6d7580', '#434a54', '#333a43', '#252b33', '#1a1f26', '#141920', '#0f1318',
];

export const theme = createTheme({
  primaryColor: 'ink',
  primaryShade: { light: 7, dark: 5 },
  colors: { ink, dark },
  fontFamily: '"IBM Plex Sans", system-ui, sans-serif',
  fontFamilyMonospace: '"IBM Plex Mono", ui-monospace, monospace',
  headings: { fontFamily: '"IBM Plex Sans", system-ui, sans-serif', fontWeight: '600' },
  defaultRadius: 'md',
  cursorType: 'pointer',
  components: {
    Card: { defaultProps: { withBorder: true, padding: 'md', radius: 'md' } },
    Tooltip: { defaultProps: { openDelay: 300, withArrow: true } },
    Table: { defaultProps: { verticalSpacing: 'xs', horizontalSpacing: 'sm' } },
  },
});
