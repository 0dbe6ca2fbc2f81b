import './styles/tokens.css';
import './styles/base.css';
import './styles/controls.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { applyTheme } from './shell/theme.svelte';

applyTheme();
const target = document.getElementById('app');
if (target) mount(App, { target });
