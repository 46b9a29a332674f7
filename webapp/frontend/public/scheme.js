// Before the first paint of the manual: the colours that were chosen in the app, else those of the system.
{
  const system = matchMedia('(prefers-color-scheme: dark)');
  const show = () => {
    const chosen = localStorage.getItem('mantine-color-scheme-value');
    const scheme = chosen === 'dark' || chosen === 'light' ? chosen : system.matches ? 'dark' : 'light';
    document.documentElement.dataset.mantineColorScheme = scheme;
  };
  show();
  system.addEventListener('change', show);
  addEventListener('storage', show);
}
